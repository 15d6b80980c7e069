import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers";

/** Stops receiving until the next turn of the event loop. Otherwise Node reads some megabytes of each connection at once. */
export function pauseUntilNextTurn(raw: IncomingMessage): void {
  pauseReading(raw, nextTurn);
}

/** Pauses only the body: Node then pauses the socket itself. Resuming a socket here would defeat that. */
export function pauseReading(raw: IncomingMessage, later: (resume: () => void) => unknown): void {
  if (raw.isPaused()) return;
  raw.pause();
  later(() => raw.resume());
}

/**
 * Frees the memory of received bytes at once. The garbage collector would let hundreds of megabytes pile up, because
 * they hardly add to the heap that it watches.
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached;
  if (isWhole) buffer.transferToFixedLength(0);
}
