/** Why the server does not start, in words for the person who starts it. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
}
