import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AtEnd } from '../../bench/support/cleanups.js';

/** A receiver of messages on this machine, which counts deliveries. */
export interface BusReceiver {
  readonly host: string;
  readonly url: string;
  /** Deliveries of each message that were answered with 200. */
  readonly taken: ReadonlyMap<string, number>;
  /** Called for each delivery. @returns the status to answer with, once it should be answered. */
  answer: (messageId: string) => Promise<number>;
}

export async function startBusReceiver(atEnd: AtEnd): Promise<BusReceiver> {
  const taken = new Map<string, number>();
  const receiver: Pick<BusReceiver, 'answer'> = { answer: () => Promise.resolve(200) };
  const server = http.createServer((request, response) => {
    const messageId = String(request.headers['x-bus-message-id']);
    request.resume();
    request.on('end', () => {
      void receiver.answer(messageId).then((status) => {
        if (status === 200) taken.set(messageId, (taken.get(messageId) ?? 0) + 1);
        response.writeHead(status).end();
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`; // TCP: never a string
  return Object.assign(receiver, { host, taken, url: `http://${host}/hook` });
}
