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
removeArtwork(target);

/** Artwork can be fetched again, and would be most of the file. */
function removeArtwork(file: string): void {
  const copy = new DatabaseSync(file);
  try {
    const isStored = copy.prepare("select 1 from sqlite_schema where name = 'artwork'").get() !== undefined;
    if (isStored && copy.prepare("delete from artwork").run().changes > 0) copy.exec("vacuum");
  } finally {
    copy.close();
  }
}
