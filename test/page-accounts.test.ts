import "./page/account.suite.ts";
import "./page/app-login.suite.ts";
import "./page/apps.suite.ts";
import "./page/oidc.suite.ts";
import "./page/passkeys.suite.ts";
import "./page/sessions.suite.ts";
import "./page/sign-in.suite.ts";
