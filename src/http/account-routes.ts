import type { IncomingMessage } from "node:http";
import { type Credential, isAlive } from "../account-store.ts";
import { type AccountRefusal, isRefused, MAX_TOKENS, SESSION_MS } from "../accounts.ts";
import { failure, type RequestFailure } from "../errors.ts";
import {
  accountResource,
  credentialResource,
  invalidAttribute,
  readNewPassword,
  readNewToken,
  readSignIn,
  readSignUp,
  writeEverything,
  writeMany,
  writeOne,
} from "../jsonapi/accounts.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../jsonapi/negotiation.ts";
import { MAX_PAGE_SIZE, readPageQuery, requireNoQuery } from "../jsonapi/query.ts";
import { everySubscription, type UserId } from "../subscriptions.ts";
import { admitTransfer } from "./admission.ts";
import { type Principal, retryAfter } from "./authenticate.ts";
import { readJson } from "./body.ts";
import { writeCookie } from "./cookies.ts";
import type { Request, Response } from "./exchange.ts";
import { type AddResource, idOf, queryOf, type RouteOptions } from "./resource.ts";
import { downloadOf, respond, respondEmpty, respondInPieces } from "./respond.ts";

/** Documents about accounts are short; a password of a megabyte is not even read. */
const MAX_BODY_BYTES = 16 * 1024;
/** Whoever deletes an account must have signed in within this time: a browser may have been left open. */
const FRESH_MS = 10 * 60 * 1_000;
const MAX_AGENT = 200;

/** Who am I, and everything about accounts. */
export function addAccountRoutes(resource: AddResource, options: Omit<RouteOptions, "metrics">): void {
  const { config, store, accounts, readClient, clock } = options;
  const { limits, basePath } = config;
  const readDocument = (request: Request, response: Response) => {
    requireContentType(request.headers["content-type"], PLAIN);
    requireAccept(request.headers.accept, PLAIN);
    requireNoQuery(queryOf(request));
    return readJson(request, response, MAX_BODY_BYTES);
  };
  const listOf = async ({ user }: Principal, kind: "token" | "session") => {
    const all = (await accounts?.listCredentials(user, kind)) ?? [];
    const now = clock();
    return all.filter((credential) => isAlive(credential, now));
  };
  const isCurrent = (credential: Credential, who: Principal) => ({ current: credential.id === who.credential?.id });
  /** What the user sees of one of its credentials. */
  const show = (credential: Credential, who: Principal) =>
    credentialResource(credential, basePath, credential.kind === "session" ? isCurrent(credential, who) : {});
  const accountOf = async ({ user }: { readonly user: UserId }) => {
    const account = await accounts?.get(user);
    if (account === undefined && accounts !== undefined) throw failure("invalid-credentials");
    return account ?? { user, name: "local", issuer: "", createdAt: undefined };
  };

  const deleting =
    accounts &&
    ({
      PATCH: [
        "account",
        async (request, response, who) => {
          const { current, wished } = readNewPassword(await readDocument(request, response));
          if (who.credential === undefined) throw failure("no-password");
          const { networks } = readClient(request.raw);
          const change = { current, wished, session: who.credential.id, networks };
          const refused = await accounts.changePassword(who, change, clock());
          if (refused !== undefined) {
            // A session that has ended is not told whether the password is right.
            await who.requireAccess();
            throw explain(refused, "current_password");
          }
          respondEmpty(response);
        },
      ],
      DELETE: [
        "account",
        async (request, response, who) => {
          requireAccept(request.headers.accept, PLAIN);
          requireNoQuery(queryOf(request));
          if (clock().getTime() - who.since.getTime() > FRESH_MS) throw failure("recent-sign-in-required");
          if (!(await accounts.delete(who, clock()))) throw failure("invalid-credentials");
          respondEmpty(response, forget(request.raw));
        },
      ],
    } satisfies Parameters<AddResource>[2] | undefined);
  const forget = (raw: IncomingMessage) => ({ "set-cookie": writeCookie(undefined, 0, readClient(raw), basePath) });

  resource("/v1/me", PLAIN, {
    GET: [
      "read",
      async (request, response, who) => {
        requireAccept(request.headers.accept, PLAIN);
        requireNoQuery(queryOf(request));
        const [account, { total }, tokens, sessions] = await Promise.all([
          accountOf(who),
          store.page(who.user, { offset: 0, size: 1 }),
          listOf(who, "token"),
          listOf(who, "session"),
        ]);
        const { credential } = who;
        respond(
          response,
          200,
          PLAIN,
          writeOne(accountResource(account, basePath), {
            credential:
              credential === undefined ? null : { kind: credential.kind, id: credential.id, scope: credential.scope },
            counts: { subscriptions: total, tokens: tokens.length, sessions: sessions.length },
            limits: {
              operations_per_request: limits.maxOperations,
              body_bytes: limits.maxBodyBytes,
              page_size: MAX_PAGE_SIZE,
              requests_per_minute: config.accounts?.requestsPerMinute ?? null,
              operations_per_minute: config.accounts?.operationsPerMinute ?? null,
              subscriptions: config.accounts?.maxSubscriptions ?? null,
            },
          }),
        );
      },
    ],
    ...deleting,
  });

  resource("/v1/me/export", PLAIN, {
    GET: [
      "account",
      async (request, response, who) => {
        requireAccept(request.headers.accept, PLAIN);
        requireNoQuery(queryOf(request));
        admitTransfer(request);
        const credentials = [...(await listOf(who, "token")), ...(await listOf(who, "session"))];
        const list = everySubscription(store, who.user, who.requireAccess);
        const everything = writeEverything(await accountOf(who), credentials, list, basePath);
        await respondInPieces(request, response, everything, downloadOf(PLAIN.contentType, "earmark.json"));
      },
    ],
  });

  if (accounts === undefined) return;

  const signIn = (request: Request, secret: string) => ({
    "set-cookie": writeCookie(secret, SESSION_MS, readClient(request.raw), basePath),
  });
  const agentOf = ({ headers }: Request) => (headers["user-agent"] ?? "").replaceAll(/[^ -~]/g, "").slice(0, MAX_AGENT);

  resource("/v1/accounts", PLAIN, {
    POST: [
      "open",
      async (request, response) => {
        const wish = readSignUp(await readDocument(request, response));
        const { networks } = readClient(request.raw);
        const opened = await accounts.signUp({ ...wish, networks, label: agentOf(request) }, clock());
        if (isRefused(opened)) throw explain(opened, "password");
        const data = accountResource(await accountOf(opened.credential), basePath);
        respond(response, 201, PLAIN, writeOne(data), { location: data.links.self, ...signIn(request, opened.secret) });
      },
    ],
  });

  resource("/v1/sessions", PLAIN, {
    GET: [
      "account",
      async (request, response, who) => {
        requireAccept(request.headers.accept, PLAIN);
        const query = readPageQuery(queryOf(request));
        const all = (await listOf(who, "session")).map((session) => show(session, who));
        respond(response, 200, PLAIN, writeMany(all, `${basePath}/v1/sessions`, query));
      },
    ],
    POST: [
      "open",
      async (request, response) => {
        const { name, password } = readSignIn(await readDocument(request, response));
        const { address, networks } = readClient(request.raw);
        const issued = await accounts.signIn({ name, password, networks, label: agentOf(request) }, clock());
        if (isRefused(issued)) {
          if (issued.refused === "wrong-password") request.log.warn({ client: address }, "failed sign-in");
          throw explain(issued, "password");
        }
        const data = credentialResource(issued.credential, basePath, { current: true });
        respond(response, 201, PLAIN, writeOne(data), { location: data.links.self, ...signIn(request, issued.secret) });
      },
    ],
  });

  resource("/v1/tokens", PLAIN, {
    GET: [
      "account",
      async (request, response, who) => {
        requireAccept(request.headers.accept, PLAIN);
        const query = readPageQuery(queryOf(request));
        const all = (await listOf(who, "token")).map((token) => show(token, who));
        respond(response, 200, PLAIN, writeMany(all, `${basePath}/v1/tokens`, query));
      },
    ],
    POST: [
      "account",
      async (request, response, who) => {
        const wish = readNewToken(await readDocument(request, response), clock());
        const opened = await accounts.createToken(who, wish, clock());
        if (isRefused(opened)) throw explain(opened, "password");
        const data = credentialResource(opened.credential, basePath, { token: opened.secret });
        respond(response, 201, PLAIN, writeOne(data), { location: data.links.self });
      },
    ],
  });

  for (const kind of ["session", "token"] as const) {
    resource(`/v1/${kind}s/:id`, PLAIN, {
      GET: [
        "account",
        async (request, response, who) => {
          requireAccept(request.headers.accept, PLAIN);
          requireNoQuery(queryOf(request));
          const id = idOf(request);
          const found = (await listOf(who, kind)).find((credential) => credential.id === id);
          if (found === undefined) throw notFound(kind);
          respond(response, 200, PLAIN, writeOne(show(found, who)));
        },
      ],
      DELETE: [
        "account",
        async (request, response, who) => {
          requireAccept(request.headers.accept, PLAIN);
          requireNoQuery(queryOf(request));
          const id = idOf(request);
          if (!(await accounts.removeCredential(who, kind, id, clock()))) throw notFound(kind);
          respondEmpty(response, id === who.credential?.id ? forget(request.raw) : {});
        },
      ],
    });
  }
}

/** `secret` is the member that has the password. */
function explain(refusal: AccountRefusal, secret: "password" | "current_password"): RequestFailure {
  switch (refusal.refused) {
    case "too-often":
      return failure("too-many-attempts", retryAfter(refusal.wait));
    case "invalid":
      return invalidAttribute(refusal.member, refusal.detail);
    case "wrong-password":
      if (secret === "password") return failure("sign-in-failed");
      return failure("wrong-password", { source: { pointer: `/data/attributes/${secret}` } });
    case "name-taken":
      return failure("name-taken", { source: { pointer: "/data/attributes/name" } });
    case "not-invited":
      return failure("invalid-invitation", { source: { pointer: "/data/attributes/invitation" } });
    case "sign-up-closed":
      return failure("sign-up-closed");
    case "full":
      return failure("too-many-tokens", { max: MAX_TOKENS, meta: { max: MAX_TOKENS } });
    case "gone":
      return failure("invalid-credentials");
  }
}

function notFound(kind: "session" | "token"): RequestFailure {
  return failure("not-found", { resource: kind === "session" ? "Session" : "Token" });
}
