import type { ErrorCode, ErrorObject } from "../../errors/catalog.ts";
import { writeFailure } from "../../jsonapi/failure.ts";
import { ATOMIC, type MediaType, PLAIN } from "../../jsonapi/media-type.ts";
import { namesEvents, requireAccept, requireAcceptEvents, requireContentType } from "../../jsonapi/negotiation.ts";

/** How the documents of an API look on the wire. */
export interface Dialect {
  readonly contentType: string;
  readonly writeError: (error: ErrorObject) => string;
  /** Throws unless the header allows a response in this dialect. */
  readonly requireAccept: (header: string | undefined) => void;
  /** Throws unless a body of this Content-Type can be read. */
  readonly requireContentType: (header: string | undefined) => void;
  /** Only for APIs of podcast apps, which have their own authentication (`app-authentication.ts`). */
  readonly app?: {
    readonly acceptsBearer: boolean;
    /** Whether apps name a device. Otherwise each app is a device of its own. */
    readonly hasDevices: boolean;
    /** How its paths begin. */
    readonly paths: readonly string[];
  };
}

function createDialect(media: MediaType): Dialect {
  return {
    contentType: media.contentType,
    writeError: (error) => writeFailure(error, media),
    requireAccept: (header) => requireAccept(header, media),
    requireContentType: (header) => requireContentType(header, media),
  };
}

/** Apps send whatever Content-Type and Accept their HTTP library chooses. */
function createAppDialect(app: NonNullable<Dialect["app"]>): Dialect {
  return {
    contentType: "application/json",
    writeError: ({ id, code, detail }) => JSON.stringify({ message: APP_MESSAGES[code] ?? detail, id }),
    requireAccept: () => undefined,
    requireContentType: () => undefined,
    app,
  };
}

/** Replaces texts that mention JSON:API features, or that say "Nothing was changed": uploads are written in steps. */
const APP_MESSAGES: { readonly [Code in ErrorCode]?: string } = {
  unauthenticated: "Authentication required: send a user name and a password or token.",
  "invalid-credentials": "Invalid user name, password or token.",
  "second-factor-required":
    "This account has an authenticator app, so apps cannot use its password. Create a token for the app in the web interface, and use it instead of the password.",
  "body-missing": "Missing request body.",
  "database-unavailable": "The database is unavailable. Try again.",
};

export const JSON_API = createDialect(PLAIN);
/** JSON:API with the Atomic Operations extension. */
export const JSON_API_ATOMIC = createDialect(ATOMIC);
/** A stream of events; errors are JSON:API. */
export const EVENT_STREAM: Dialect = { ...JSON_API, requireAccept: requireAcceptEvents };
/** JSON:API, or a stream of events for clients that ask for it. */
export const JSON_API_OR_EVENTS: Dialect = {
  ...JSON_API,
  requireAccept: (header) => {
    if (!namesEvents(header)) JSON_API.requireAccept(header);
  },
};

/** The gPodder API, version 2, and the simple API. */
export const GPODDER = createAppDialect({
  acceptsBearer: false,
  hasDevices: true,
  paths: ["/api/2/", "/subscriptions/"],
});
/** The API of the Nextcloud app gPodder Sync, with the parts of Nextcloud that apps sign in with. */
export const NEXTCLOUD = createAppDialect({
  acceptsBearer: true,
  hasDevices: false,
  paths: ["/index.php/", "/apps/gpoddersync/", "/login/", "/ocs/"],
});
