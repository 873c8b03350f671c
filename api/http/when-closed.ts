import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const waiting = new WeakMap<ServerResponse, (() => void)[]>();

/** Close callbacks of a connection's open responses. */
const open = new WeakMap<Socket, Set<() => void>>();

/** Calls `then` when an open answer is sent or its client leaves, by one listener: Node warns of many. */
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

/** Tracks a connection's responses: Node does not notify a pipelined response of the connection's end. */
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
