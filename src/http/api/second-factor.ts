import type { Accounts } from "../../accounts/accounts.ts";
import { isActiveAdmin } from "../../accounts/administration-store.ts";
import type { Caller } from "../../accounts/caller.ts";
import { referenceOf } from "../../accounts/names.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import type { Signatures } from "../../accounts/signatures.ts";
import { failure } from "../../errors/catalog.ts";
import { writeMeta, writeOne } from "../../jsonapi/document.ts";
import { requireRecentSignIn, toFailure } from "../auth/sign-in.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { readNewSecondFactor, secondFactorResource } from "./documents/accounts.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/second-factor`: the authenticator app of the user, and recovery codes. */
export function createSecondFactorHandlers(
  accounts: Accounts,
  signatures: Signatures,
  { config, hub, readPeer, clock }: Services,
) {
  const { secondFactor } = accounts;

  const foundOf = async ({ caller }: Call) => {
    const found = await accounts.store.get(caller.user);
    if (found === undefined) throw failure("invalid-credentials");
    return found;
  };

  const resourceOf = async (call: Call, recoveryCodes?: readonly string[]) => {
    const found = await foundOf(call);
    const { account, totpSecret } = found;
    const left = await accounts.store.listCredentials(account.user, "recovery-code");
    const isForAdmins = config.accounts?.requireSecondFactor === "admins" && isActiveAdmin(account);
    const isRequired = isForAdmins && !(await accounts.hasSecondFactor(found));
    const state = { isEnabled: totpSecret !== undefined, isRequired, recoveryCodesLeft: left.length };
    return secondFactorResource(account.user, state, config.basePath, recoveryCodes);
  };

  /** The caller of a change, which the audit log records. */
  const callerOf = async (call: Call): Promise<Caller> => {
    requireRecentSignIn(call.caller, clock());
    const { account } = await foundOf(call);
    const { address } = readPeer(call.request.raw);
    return { ...call.caller, actor: { name: referenceOf(account), address } };
  };

  return {
    async get(call: Call): Promise<void> {
      respond(call.response, 200, JSON_API, writeOne(await resourceOf(call)));
    },

    async enrollment(call: Call): Promise<void> {
      requireRecentSignIn(call.caller, clock());
      const { account, passwordHash } = await foundOf(call);
      if (passwordHash === "") throw failure("no-password");
      const { ticket, secret, uri, expiresAt } = await secondFactor.enroll(account, signatures, clock());
      const meta = { ticket, secret, uri, expires_at: expiresAt.toISOString() };
      respond(call.response, 200, JSON_API, writeMeta(meta));
    },

    async add(call: Call): Promise<void> {
      const { request, response, maxBytes } = call;
      const caller = await callerOf(call);
      const confirmed = readNewSecondFactor(await readJson(request, response, maxBytes));
      const keepSession = call.caller.credential?.id;
      const codes = await secondFactor.confirm(caller, confirmed, { signatures, keepSession }, clock());
      if (isAccountRefusal(codes)) {
        const source = { pointer: "/data/attributes/one_time_code" };
        throw toFailure(codes, { "wrong-code": failure("invalid-one-time-code", { source }) });
      }
      hub.recheck(caller.user);
      const data = await resourceOf(call, codes);
      respond(response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },

    async remove(call: Call): Promise<void> {
      const refusal = await secondFactor.remove(await callerOf(call), clock());
      if (refusal !== undefined) throw toFailure(refusal);
      respondEmpty(call.response);
    },

    async replaceRecoveryCodes(call: Call): Promise<void> {
      const codes = await secondFactor.replaceRecoveryCodes(await callerOf(call), clock());
      if (isAccountRefusal(codes)) throw toFailure(codes);
      const data = await resourceOf(call, codes);
      respond(call.response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },
  };
}
