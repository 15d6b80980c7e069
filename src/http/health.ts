import { failure } from "../errors.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import { JSON_API } from "./dialect.ts";
import { respond } from "./respond.ts";
import type { Call } from "./router.ts";
import type { Services } from "./services.ts";

/** Handlers of `/healthz` and `/readyz`. */
export function createHealthHandlers({ store }: Services, isDraining: () => boolean) {
  return {
    async live({ response }: Call): Promise<void> {
      respond(response, 200, JSON_API, writeStatus("ok"));
    },

    async ready({ response }: Call): Promise<void> {
      if (isDraining()) throw failure("shutting-down");
      await store.ready();
      respond(response, 200, JSON_API, writeStatus("ready"));
    },
  };
}

function writeStatus(status: string): string {
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, meta: { status } });
}
