import "./page/connection.suite.ts";
import "./page/keyboard.suite.ts";
import "./page/list.suite.ts";
import "./page/remove.suite.ts";
import "./page/removed.suite.ts";
import "./page/rename.suite.ts";
