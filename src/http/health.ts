import { failure } from "../errors/catalog.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import type { Services } from "./api/services.ts";
import { JSON_API } from "./wire/dialect.ts";
import { respond } from "./wire/respond.ts";
import type { Call } from "./wire/router.ts";

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
