// CommonJS for any Node from version 20. Tools such as Vite and npm cache compiled code, by default in the shared
// temporary folder, where other users could plant code. Keep the cache inside the project.
"use strict";

const path = require("node:path");

process.env.NODE_COMPILE_CACHE ||= path.join(__dirname, "..", "node_modules", ".cache", "tools");
