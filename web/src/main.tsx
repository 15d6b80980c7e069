import { render } from "preact";
import { App } from "./app.tsx";
import { load } from "./library.ts";
import { greet } from "./server.ts";
import "./style.css";
import { preferredLanguage, speak } from "./words/index.ts";

const place = document.getElementById("app");
if (place === null) throw new Error("the page has no place for the app");

// Asked for at once; whoever is not signed in is let in first.
void greet().catch(() => undefined);
void load();
await speak(preferredLanguage());
render(<App />, place);
