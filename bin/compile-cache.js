// Plain JavaScript that any Node can read. Tools such as Vite and npm keep compiled code between runs, by default in the
// folder for temporary files, where other users of the machine could plant code. Here they keep it inside the project.
"use strict";

var path = require("node:path");

if (!process.env.NODE_COMPILE_CACHE)
  process.env.NODE_COMPILE_CACHE = path.join(__dirname, "..", "node_modules", ".cache", "tools");
