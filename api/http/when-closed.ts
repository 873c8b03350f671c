import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What each response is waited for with. */
const waiting = new WeakMap<ServerResponse, (() => void)[]>();

/** What closes the responses of a connection that are not closed yet. */
const open = new WeakMap<Socket, Set<() => void>>();

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
  const others = openOn(response.req.socket);
  const close = () => {
    if (!others.delete(close)) return;
    for (const each of all) each();
  };
  others.add(close);
  response.once('close', close);
}

/** An answer that waits behind another one is not told by Node when its connection ends. */
function openOn(socket: Socket): Set<() => void> {
  const known = open.get(socket);
  if (known) return known;
  const closes = new Set<() => void>();
  open.set(socket, closes);
  socket.once('close', () => {
    for (const close of closes) close();
  });
  return closes;
}
