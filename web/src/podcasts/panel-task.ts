import { opened } from "../list/place.ts";

/** An edit in the panel of a podcast. */
export type PanelTask = "name" | "folder" | "merge";

let requested: PanelTask | undefined;

/** Opens the panel of a podcast for an edit. */
export function openPanel(id: string, task: PanelTask): true {
  requested = task;
  opened.set(id);
  return true;
}

/** What the panel was opened for, if it was for an edit. */
export function takeTask(): PanelTask | undefined {
  const task = requested;
  requested = undefined;
  return task;
}
