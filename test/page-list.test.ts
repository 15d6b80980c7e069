import "./page/connection.suite.ts";
import "./page/keyboard.suite.ts";
import "./page/list.suite.ts";
import "./page/live.suite.ts";
// Not with the other tests of accounts, which create more accounts than the page shows at once.
import "./page/people.suite.ts";
import "./page/podcasts.suite.ts";
import "./page/remove.suite.ts";
import "./page/removed.suite.ts";
import "./page/rename.suite.ts";
import "./page/tabs.suite.ts";
