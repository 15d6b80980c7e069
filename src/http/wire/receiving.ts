import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers";

/** Stops receiving until the next turn of the event loop. Otherwise Node reads a few megabytes per connection. */
export function pauseUntilNextTurn(raw: IncomingMessage): void {
  pauseReading(raw, nextTurn);
}

/** Pauses only the body: Node then pauses the socket itself. Resuming a socket here would defeat that. */
export function pauseReading(raw: IncomingMessage, schedule: (resume: () => void) => unknown): void {
  if (raw.isPaused()) return;
  raw.pause();
  schedule(() => raw.resume());
}

/**
 * Frees the memory of received bytes immediately. The garbage collector would let hundreds of megabytes pile up,
 * because they hardly add to the heap that it watches.
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached;
  // All empty bodies share one buffer.
  if (isWhole && byteLength > 0) buffer.transferToFixedLength(0);
}
