/** An error that the person at the command line can fix. The program prints the message without a stack trace. */
export class UserError extends Error {
  override readonly name = "UserError";
}
