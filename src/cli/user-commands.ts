import { type Command, stringOption } from "./command.ts";

/** Commands for accounts, invitations, tokens and the audit log. */
export const USER_COMMANDS: Readonly<Record<string, Command>> = {
  "user add": {
    operands: ["NAME"],
    options: ["password-stdin"],
    summary: "Create an account",
    examples: [["earmark user add ann", "Create the account ann; prompts for the password"]],
    run: async (terminal, options, [name = ""]) =>
      (await import("./accounts.ts")).addUser(terminal, name, options["password-stdin"] === true),
  },
  "user list": {
    operands: [],
    options: ["json"],
    summary:
      "List accounts, oldest first: name, creation time, number of subscriptions, identity provider (issuer), role, last seen (day), stored items (subscriptions, removals and episode actions), state",
    examples: [["earmark user list", "List all accounts"]],
    run: async (terminal, options) => (await import("./administration.ts")).listUsers(terminal, options.json === true),
  },
  "user passwd": {
    operands: ["NAME"],
    options: ["password-stdin", "revoke-tokens"],
    summary: "Set a new password for an account and end all its sessions",
    examples: [["earmark user passwd ann", "Change the password of ann; prompts for the new one"]],
    run: async (terminal, options, [name = ""]) =>
      (await import("./accounts.ts")).changePassword(terminal, name, {
        fromStdin: options["password-stdin"] === true,
        revokesTokens: options["revoke-tokens"] === true,
      }),
  },
  "user reset-password": {
    operands: ["NAME"],
    options: [],
    summary: "Create a link that lets the user set a new password; it works once and expires after a day",
    examples: [["earmark user reset-password ann", "Print the link"]],
    run: async (terminal, _options, [name = ""]) =>
      (await import("./administration.ts")).createResetLink(terminal, name),
  },
  "user reset-second-factor": {
    operands: ["NAME"],
    options: [],
    summary: "Remove the authenticator app and recovery codes of an account, so that its password is enough to sign in",
    examples: [["earmark user reset-second-factor ann", "Let ann sign in again who has lost her phone"]],
    run: async (terminal, _options, [name = ""]) =>
      (await import("./administration.ts")).resetSecondFactor(terminal, name),
  },
  "user disable": {
    operands: ["NAME"],
    options: [],
    summary: "Block all access to an account but keep its data",
    examples: [["earmark user disable ann", "Sign out ann and block her apps"]],
    run: async (terminal, _options, [name = ""]) =>
      (await import("./administration.ts")).changeUser(terminal, name, "disable"),
  },
  "user enable": {
    operands: ["NAME"],
    options: [],
    summary: "Allow access to a disabled account again",
    examples: [["earmark user enable ann", "Let ann sign in again; her apps work again too"]],
    run: async (terminal, _options, [name = ""]) =>
      (await import("./administration.ts")).changeUser(terminal, name, "enable"),
  },
  "user admin": {
    operands: ["NAME"],
    options: ["revoke"],
    summary: "Make an account an administrator; with --revoke, remove the role",
    examples: [
      ["earmark user admin ann", "Let ann administer the server in the web interface"],
      ["earmark user admin ann --revoke", "Take the role away again"],
    ],
    run: async (terminal, options, [name = ""]) =>
      (await import("./administration.ts")).changeUser(terminal, name, options.revoke === true ? "demote" : "promote"),
  },
  "user delete": {
    operands: ["NAME"],
    options: ["yes"],
    summary: "Delete an account and all its data",
    examples: [["earmark user delete ann", "Delete the account ann; prompts for confirmation unless --yes is given"]],
    run: async (terminal, options, [name = ""]) =>
      (await import("./accounts.ts")).deleteUser(terminal, name, options.yes === true),
  },
  "user export": {
    operands: ["NAME"],
    options: [],
    summary: "Export all of an account's data as JSON",
    examples: [["earmark user export ann > ann.json", "Save the data to a file"]],
    run: async (terminal, _options, [name = ""]) => (await import("./accounts.ts")).exportUser(terminal, name),
  },
  "user import": {
    operands: ["NAME", "FILE|-"],
    options: ["dry-run", "json"],
    summary:
      "Add what an export of an account contains to account NAME; if FILE is -, read standard input. Nothing is removed",
    examples: [
      ["earmark user import ann ann.json --dry-run", "Count what would be added"],
      ["earmark user import ann ann.json", "Import the file"],
    ],
    run: async (terminal, options, [name = "", path = ""]) =>
      (await import("./account-imports.ts")).importUser(terminal, name, path, {
        dryRun: options["dry-run"] === true,
        asJson: options.json === true,
      }),
  },
  "user invite": {
    operands: [],
    options: ["days", "note"],
    meanings: { days: "Days until the invitation expires (default: 7)" },
    summary: "Create a link that lets one person create an account",
    examples: [["earmark user invite --days 2 --note Ann", "Create a link that expires in two days"]],
    run: async (terminal, options) =>
      (await import("./administration.ts")).invite(terminal, stringOption(options.days), stringOption(options.note)),
  },
  "user invitations": {
    operands: [],
    options: ["json"],
    summary: "List unused invitations with id, creation time, expiry and note",
    examples: [["earmark user invitations", "List all unused invitations"]],
    run: async (terminal, options) =>
      (await import("./administration.ts")).listInvitations(terminal, options.json === true),
  },
  "user revoke-invitation": {
    operands: ["ID"],
    options: [],
    summary: "Revoke an invitation immediately",
    examples: [["earmark user revoke-invitation 5a2e7c1b-…", "Revoke the invitation with this id"]],
    run: async (terminal, _options, [id = ""]) => (await import("./administration.ts")).revokeInvitation(terminal, id),
  },
  audit: {
    operands: [],
    options: ["json"],
    summary: "Print the audit log, newest first: time, action, actor, target, IP address",
    examples: [["earmark audit | head", "Show the latest entries"]],
    run: async (terminal, options) =>
      (await import("./administration.ts")).listAuditLog(terminal, options.json === true),
  },
  "token create": {
    operands: ["NAME"],
    options: ["label", "read-only", "days"],
    summary: "Create a token that gives one app access to account NAME",
    examples: [["earmark token create ann --label AntennaPod", "Print the token, which is not shown again"]],
    run: async (terminal, options, [name = ""]) =>
      (await import("./accounts.ts")).createToken(terminal, name, {
        label: stringOption(options.label),
        readOnly: options["read-only"] === true,
        days: stringOption(options.days),
      }),
  },
  "token list": {
    operands: ["NAME"],
    options: ["json"],
    summary: "List the tokens of account NAME: id, scope, state, last use, expiry, label",
    examples: [["earmark token list ann", "List the tokens of one account"]],
    run: async (terminal, options, [name = ""]) =>
      (await import("./accounts.ts")).listTokens(terminal, name, options.json === true),
  },
  "token revoke": {
    operands: ["NAME", "ID"],
    options: [],
    summary: "Revoke a token of account NAME immediately",
    examples: [["earmark token revoke ann 5a2e7c1b-…", "Revoke the token with this id"]],
    run: async (terminal, _options, [name = "", id = ""]) =>
      (await import("./accounts.ts")).revokeToken(terminal, name, id),
  },
};
