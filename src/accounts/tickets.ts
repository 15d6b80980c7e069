import { randomBytes } from "node:crypto";
import type { Signatures } from "./signatures.ts";

/**
 * A random string that the server issues and accepts back for a short time. It is signed and not stored, so that any
 * process can verify it and an attempt that is never finished leaves nothing behind.
 */
export interface Ticket {
  /** 256 random bits. */
  readonly random: string;
  /** What the ticket was issued for, such as a user. */
  readonly subject: string;
  readonly expiresAt: Date;
}

/** Tickets of one purpose are invalid for every other. */
type TicketPurpose = "oidc login" | "passkey" | "totp";

export async function issueTicket(
  signatures: Signatures,
  purpose: TicketPurpose,
  subject: string,
  lifetimeMs: number,
  at: Date,
): Promise<{ readonly text: string; readonly ticket: Ticket }> {
  const seconds = Math.floor((at.getTime() + lifetimeMs) / 1_000);
  const random = randomBytes(32).toString("base64url");
  const content = `${seconds.toString(36)}~${random}~${subject}`;
  const text = `${content}~${await signatures.sign(signedText(purpose, content), at)}`;
  return { text, ticket: { random, subject, expiresAt: new Date(seconds * 1_000) } };
}

/** Undefined if the ticket is invalid or expired. */
export async function readTicket(
  signatures: Signatures,
  purpose: TicketPurpose,
  text: string,
  at: Date,
): Promise<Ticket | undefined> {
  const [, content = "", seconds = "", random = "", subject = "", signature = ""] = TICKET.exec(text) ?? [];
  const expiresAt = new Date(Number.parseInt(seconds, 36) * 1_000);
  if (content === "" || expiresAt <= at) return undefined;
  if (!(await signatures.verify(signedText(purpose, content), signature, at))) return undefined;
  return { random, subject, expiresAt };
}

const TICKET = /^(([0-9a-z]{1,8})~([\w-]{43})~([\w.-]{0,40}))~([0-9a-f-]{36}~[\w-]{43})$/;

function signedText(purpose: TicketPurpose, content: string): string {
  return `${purpose}\0${content}`;
}
