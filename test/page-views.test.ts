import "./page/add.suite.ts";
import "./page/appearance.suite.ts";
import "./page/import.suite.ts";
import "./page/install.suite.ts";
