// First: it restores the URL that the other modules read.
import "./accounts/sign-in-return.ts";
import { render } from "preact";
import { loadUser } from "./server/server.ts";
import { App } from "./shell/app.tsx";
import { enableOfflineStart } from "./shell/offline-start.ts";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/list.css";
import "./styles/outcomes.css";
import "./styles/apps.css";
import "./styles/overlays.css";
import { preferredLanguage, setLanguage } from "./words/index.ts";

const root = document.getElementById("app");
if (root === null) throw new Error("the page has no #app element");

// Sends the request before anything is rendered. Without a session, it waits for the user to sign in.
void loadUser();
if ((await setLanguage(preferredLanguage())) || (await setLanguage("en"))) render(<App />, root);
enableOfflineStart();
