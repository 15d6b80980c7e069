import type { UserId } from "../../accounts/caller.ts";
import { failure } from "../../errors/catalog.ts";
import { writeOne, writePageOf } from "../../jsonapi/document.ts";
import type { PageQuery } from "../../jsonapi/query.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { deviceResource, readDeviceChanges, writeActionPage } from "./documents/apps.ts";
import type { ActionListQuery } from "./queries.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/devices` and `/v1/episode-actions`: what apps have synced, in JSON:API. */
export function createAppDataHandlers({ config: { basePath }, store, apps, clock }: Services) {
  const listDevices = async (user: UserId) => {
    const [devices, { total }] = await Promise.all([
      store.apps.devices(user),
      store.page(user, { offset: 0, size: 1 }),
    ]);
    return devices.map((device) => deviceResource(device, total, basePath));
  };
  const sendDevice = async ({ response, caller, params: { device: id } }: Call) => {
    const found = (await listDevices(caller.user)).find((device) => device.id === id);
    if (found === undefined) throw notFound();
    respond(response, 200, JSON_API, writeOne(found));
  };

  return {
    async listDevices({ response, caller, query }: Call<PageQuery>): Promise<void> {
      respond(response, 200, JSON_API, writePageOf(await listDevices(caller.user), `${basePath}/v1/devices`, query));
    },

    getDevice: sendDevice,

    async changeDevice(call: Call): Promise<void> {
      const { request, response, caller, params, maxBytes } = call;
      const id = params["device"] ?? "";
      const changes = readDeviceChanges(await readJson(request, response, maxBytes), id);
      caller.spend(1);
      if (!(await store.apps.changeDevice(caller, id, changes, clock()))) throw notFound();
      await sendDevice(call);
    },

    async forgetDevice({ response, caller, params }: Call): Promise<void> {
      caller.spend(1);
      if (!(await store.apps.forgetDevice(caller, params["device"] ?? "", clock()))) throw notFound();
      respondEmpty(response);
    },

    async listActions({ response, caller: { user }, query }: Call<ActionListQuery>): Promise<void> {
      const { number, size, feedUrl } = query;
      const page = await apps.actionPage(user, { offset: (number - 1) * size, size }, feedUrl);
      respond(response, 200, JSON_API, writeActionPage(page, query, basePath));
    },
  };
}

function notFound() {
  return failure("not-found", { resource: "Device" });
}
