import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";

/** A thread that copies the live content of a database to a new file. */
const { path, target } = workerData as { readonly path: string; readonly target: string };
const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
try {
  database.prepare("vacuum into ?").run(target);
} finally {
  database.close();
}
