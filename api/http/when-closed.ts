import type { ServerResponse } from 'node:http';

/** What each response is waited for with. */
const waiting = new WeakMap<ServerResponse, (() => void)[]>();

/**
 * Calls `then` when an answer is out or its client gone; never for a response that is closed already.
 * All who wait share one listener: beside those that Node adds to send a stream, one for each of them
 * would look like a leak, and Node would say so.
 */
export function whenClosed(response: ServerResponse, then: () => void): void {
  const known = waiting.get(response);
  if (known) return void known.push(then);
  const all = [then];
  waiting.set(response, all);
  response.once('close', () => {
    for (const each of all) each();
  });
}
