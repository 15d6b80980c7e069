import { isObject } from "../../../util/is-object.ts";

/** The poll token in a query string or form; empty if missing. An app sends it to ask whether its login was allowed. */
export function readPollForm(text: string): string {
  return new URLSearchParams(text).get("token") ?? "";
}

/** The poll token in a body, which is a form or JSON; empty if missing. */
export function readPollBody(body: string): string {
  if (!body.trimStart().startsWith("{")) return readPollForm(body);
  try {
    const document: unknown = JSON.parse(body);
    const token = isObject(document) ? document["token"] : undefined;
    return typeof token === "string" ? token : "";
  } catch {
    return "";
  }
}

/** The first response of the login flow. `server` is an absolute URL without a trailing slash. */
export function writeStartedLogin(
  server: string,
  { pollToken, loginUrl }: { pollToken: string; loginUrl: string },
): string {
  const poll = { token: pollToken, endpoint: `${server}/index.php/login/v2/poll` };
  return JSON.stringify({ poll, login: loginUrl });
}

/** The response once the user has allowed the login. */
export function writeAllowedLogin(server: string, loginName: string, appPassword: string): string {
  return JSON.stringify({ server, loginName, appPassword });
}

/** A response in the format of the Open Collaboration Services (OCS) API. App passwords need no escaping in XML. */
export function writeOcsResponse(appPassword?: string): string {
  const data = appPassword === undefined ? "<data/>" : `<data><apppassword>${appPassword}</apppassword></data>`;
  const meta = "<meta><status>ok</status><statuscode>200</statuscode><message>OK</message></meta>";
  return `<?xml version="1.0"?>\n<ocs>${meta}${data}</ocs>\n`;
}
