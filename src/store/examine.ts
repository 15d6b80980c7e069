import { type Finding, nameOf } from "./store-options.ts";

/** Whether a database is there, whole and kept safely. Changes nothing. */
export async function examine(url: string): Promise<readonly Finding[]> {
  try {
    if (url.startsWith("file:")) return (await import("./sqlite-file.ts")).examineFile(url.slice("file:".length));
    return await (await import("./postgres-schema.ts")).examineDatabase(url);
  } catch (error) {
    return [
      {
        state: "wrong",
        what: `The database at ${nameOf(url)} cannot be used: ${(error as Error).message}`,
        advice: "Check DATABASE_URL, and that this user may open it.",
      },
    ];
  }
}
