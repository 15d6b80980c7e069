import { MAX_SESSIONS, MAX_TOKENS, SESSION_MS } from "../accounts.ts";
import { MAX_PAGE_SIZE } from "../jsonapi/query.ts";
import { headerRef } from "./failures.ts";
import { answer, type Describe, documentBody, emptyAnswer } from "./operation.ts";
import { DOCUMENT, download, exampleSubscription, JSONAPI, location, MOMENT, READING } from "./paths.ts";
import type { Facts } from "./schemas.ts";
import type { Header, PathItem } from "./types.ts";

const SESSION_ID = "3f0c9d52-6b1e-4b7a-9c35-6f0e5c1d2a90";
const TOKEN_ID = "5a2e7c1b-93d4-4f06-8b1f-2c7d9e0a4b63";
const UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";

/** What browsers keep of a session, and how they are made to forget it. */
export function cookieHeaders({ basePath }: Facts): Readonly<Record<string, Header>> {
  const path = `${basePath.replaceAll(".", "\\.")}/`;
  const cookie = (value: string, age: number) =>
    `^(__${basePath === "" ? "Host" : "Secure"}-)?earmark=${value}; Path=${path}; Max-Age=${age}; HttpOnly; SameSite=Lax(; Secure)?$`;
  const forgotten = {
    description: "That the browser forgets the session, if it was the one that asked.",
    schema: { type: "string", pattern: cookie("", 0) },
  } as const;
  return {
    SessionCookie: {
      description: "The session, for browsers.",
      required: true,
      schema: { type: "string", pattern: cookie("[\\w-]{43}", SESSION_MS / 1_000) },
    },
    ForgottenCookie: { ...forgotten, required: true },
    PerhapsForgottenCookie: { ...forgotten, required: false },
  };
}

/** Who am I: this is there without accounts too. */
export function mePaths(facts: Facts, describe: Describe): Record<string, PathItem> {
  const { basePath, limits, accounts } = facts;
  const tag = "My account";
  const me = exampleAccount(facts);
  const inPerson = (): PathItem => ({
    patch: describe("patch", {
      id: "changePassword",
      tag,
      summary: "Change the password",
      description: "Every session ends but the one that did it. Tokens go on.",
      access: "account",
      body: documentBody("The password as it is and as it shall be.", "NewPassword", {
        "A longer one": {
          data: {
            type: "account",
            attributes: { current_password: "correct horse battery", password: "a longer one this time" },
          },
        },
      }),
      answers: { 204: emptyAnswer("It was changed.") },
      failures: [...DOCUMENT, "WrongPassword", "NoPassword"],
    }),
    delete: describe("delete", {
      id: "deleteAccount",
      tag,
      summary: "Delete the account with everything",
      description: "This cannot be undone, so the sign-in must not be older than ten minutes.",
      access: "account",
      answers: { 204: emptyAnswer("It is gone.", { "Set-Cookie": headerRef("ForgottenCookie") }) },
      failures: [...READING, "SignInAgain"],
    }),
  });
  return {
    "/v1/me": {
      get: describe("get", {
        id: "getMe",
        tag,
        summary: "Who I am, what I have, what I may do",
        description:
          accounts === undefined
            ? "On a server without accounts this is the one user; `credential` and the limits of accounts are null."
            : "With the credential that the request came with, counts, and the limits of this server.",
        access: "read",
        answers: {
          200: answer("The user.", "Me", {
            examples: {
              "A user": {
                jsonapi: JSONAPI,
                data: me,
                meta: {
                  credential: accounts === undefined ? null : { kind: "session", id: SESSION_ID, scope: "write" },
                  counts: { subscriptions: 1, tokens: 0, sessions: accounts === undefined ? 0 : 1 },
                  limits: {
                    operations_per_request: limits.maxOperations,
                    body_bytes: limits.maxBodyBytes,
                    page_size: MAX_PAGE_SIZE,
                    requests_per_minute: accounts?.requestsPerMinute ?? null,
                    operations_per_minute: accounts?.operationsPerMinute ?? null,
                    subscriptions: accounts?.maxSubscriptions ?? null,
                  },
                },
              },
            },
          }),
        },
        failures: READING,
      }),
      ...(accounts === undefined ? {} : inPerson()),
    },
    "/v1/me/export": {
      get: describe("get", {
        id: "exportEverything",
        tag,
        summary: "Everything in one document",
        description: "The account, its tokens and sessions without their secrets, and all subscriptions.",
        access: "account",
        answers: {
          200: answer("Everything.", "Everything", {
            headers: { "Content-Disposition": download("earmark.json") },
            examples: { "A short list": { jsonapi: JSONAPI, data: [me, exampleSubscription(basePath)] } },
          }),
        },
        failures: READING,
      }),
    },
  };
}

function exampleAccount({ basePath, accounts }: Facts) {
  return {
    type: "account",
    id: "1",
    attributes:
      accounts === undefined
        ? { name: "local", issuer: null, created_at: null }
        : { name: "ann", issuer: null, created_at: MOMENT },
    links: { self: `${basePath}/v1/me` },
  };
}

/** Signing up and in, and what is left behind by that. */
export function signInPaths(facts: Facts, describe: Describe): Record<string, PathItem> {
  const { basePath, accounts } = facts;
  if (accounts === undefined) return {};
  const tag = "Signing in";
  const session = {
    type: "session",
    id: SESSION_ID,
    attributes: {
      label: "A browser/1.0",
      created_at: MOMENT,
      last_used_at: null,
      expires_at: "2027-02-13T09:30:00.000Z",
      current: true,
    },
    links: { self: `${basePath}/v1/sessions/${SESSION_ID}` },
  };
  const token = {
    type: "token",
    id: TOKEN_ID,
    attributes: { label: "phone", scope: "write", created_at: MOMENT, last_used_at: null, expires_at: null },
    links: { self: `${basePath}/v1/tokens/${TOKEN_ID}` },
  };
  const pageWith = (path: string, item: object) => {
    const link = `${basePath}${path}?page[number]=1&page[size]=10`;
    return {
      jsonapi: JSONAPI,
      links: { self: link, first: link, prev: null, next: null, last: link },
      data: [item],
      meta: { total: 1 },
    };
  };
  const showing = (value: object) => ({ examples: { "One of them": value } });
  const person = { name: "ann", password: "correct horse battery" };

  return {
    "/v1/accounts": {
      post: describe("post", {
        id: "signUp",
        tag,
        summary: "Make an account, and sign in",
        description: accounts.signUp
          ? "On this server anyone may."
          : "On this server it takes an invitation, which its operator makes. It is good for one account.",
        access: "open",
        body: documentBody("Name and password, and the invitation if there is one.", "SignUp", {
          "A new account": {
            data: {
              type: "account",
              attributes: accounts.signUp
                ? person
                : { ...person, invitation: "emi_nZ3vaQm8X1rTb6Yw2Lk9Pd4Sg7Hc0Jf5Ue1Vo8Ri3Aq" },
            },
          },
        }),
        answers: {
          201: answer("The account was made, and a session opened.", "AccountDocument", {
            headers: { Location: location(`${basePath}/v1/me`), "Set-Cookie": headerRef("SessionCookie") },
            examples: { "A new account": { jsonapi: JSONAPI, data: exampleAccount(facts) } },
          }),
        },
        // 401 when the account is gone again before its session is open.
        failures: [...DOCUMENT, "Unauthorized", "SignUpClosed", "InvitationNotValid", "NameTaken", "TooManyRequests"],
      }),
    },
    "/v1/sessions": {
      get: describe("get", {
        id: "listSessions",
        tag,
        summary: "List sessions",
        access: "account",
        parameters: ["PageNumber", "PageSize"],
        answers: { 200: answer("A page of them.", "SessionPage", showing(pageWith("/v1/sessions", session))) },
        failures: READING,
      }),
      post: describe("post", {
        id: "signIn",
        tag,
        summary: "Sign in",
        description: `Opens a session and gives it as a cookie. It ends after 14 days without use, and after ${SESSION_MS / 86_400_000} days in any case. An account may have ${MAX_SESSIONS}; of more, the one that was not used for longest makes room.`,
        access: "open",
        body: documentBody("Name and password.", "SignIn", {
          "A person": { data: { type: "session", attributes: person } },
        }),
        answers: {
          201: answer("The session was opened.", "SessionDocument", {
            headers: {
              Location: location(`${basePath}/v1/sessions/${UUID}`),
              "Set-Cookie": headerRef("SessionCookie"),
            },
            ...showing({ jsonapi: JSONAPI, data: session }),
          }),
        },
        failures: [...DOCUMENT, "Unauthorized", "TooManyRequests"],
      }),
    },
    "/v1/sessions/{id}": {
      get: describe("get", {
        id: "getSession",
        tag,
        summary: "Fetch one session",
        access: "account",
        parameters: ["Id"],
        answers: { 200: answer("The session.", "SessionDocument", showing({ jsonapi: JSONAPI, data: session })) },
        failures: [...READING, "InvalidResourceIdentifier", "SessionNotFound"],
      }),
      delete: describe("delete", {
        id: "endSession",
        tag,
        summary: "End a session",
        description: "The one that asks signs out; another is signed out at once, wherever it is.",
        access: "account",
        parameters: ["Id"],
        answers: { 204: emptyAnswer("It has ended.", { "Set-Cookie": headerRef("PerhapsForgottenCookie") }) },
        failures: [...READING, "InvalidResourceIdentifier", "SessionNotFound"],
      }),
    },
    "/v1/tokens": {
      get: describe("get", {
        id: "listTokens",
        tag,
        summary: "List tokens",
        access: "account",
        parameters: ["PageNumber", "PageSize"],
        answers: { 200: answer("A page of them.", "TokenPage", showing(pageWith("/v1/tokens", token))) },
        failures: READING,
      }),
      post: describe("post", {
        id: "createToken",
        tag,
        summary: "Make a token for an app",
        description: `The token is shown in this answer and never again. An account may have ${MAX_TOKENS}.`,
        access: "account",
        body: documentBody("What the token is for, what it may do and when it ends.", "NewToken", {
          "For a phone": {
            data: { type: "token", attributes: { label: "phone", scope: "write", expires_at: null } },
          },
        }),
        answers: {
          201: answer("The token, with its secret.", "TokenWithSecretDocument", {
            headers: { Location: location(`${basePath}/v1/tokens/${UUID}`) },
            ...showing({
              jsonapi: JSONAPI,
              data: {
                ...token,
                attributes: { ...token.attributes, token: "emk_nZ3vaQm8X1rTb6Yw2Lk9Pd4Sg7Hc0Jf5Ue1Vo8Ri3Aq" },
              },
            }),
          }),
        },
        failures: [...DOCUMENT, "TooManyTokens"],
      }),
    },
    "/v1/tokens/{id}": {
      get: describe("get", {
        id: "getToken",
        tag,
        summary: "Fetch one token",
        access: "account",
        parameters: ["Id"],
        answers: { 200: answer("The token.", "TokenDocument", showing({ jsonapi: JSONAPI, data: token })) },
        failures: [...READING, "InvalidResourceIdentifier", "TokenNotFound"],
      }),
      delete: describe("delete", {
        id: "revokeToken",
        tag,
        summary: "Revoke a token",
        description: "It opens nothing any more, at once on every process.",
        access: "account",
        parameters: ["Id"],
        answers: { 204: emptyAnswer("It was revoked.") },
        failures: [...READING, "InvalidResourceIdentifier", "TokenNotFound"],
      }),
    },
  };
}
