import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { until } from '../../support/until.js';

/** A relay to a server that can hold back answers. */
interface Relay {
  readonly url: string;
  /** Holds back answers and clears `sent`. */
  hold(): void;
  /** Bytes sent to the server since the last hold. */
  sent(): string;
  release(): void;
  close(): Promise<void>;
}

async function relayTo(url: string): Promise<Relay> {
  const target = new URL(url);
  const sockets: Socket[] = [];
  const answering: Socket[] = [];
  let sent = '';
  const server = createServer((near) => {
    const far = connect({ host: target.hostname, port: Number(target.port) });
    near.on('data', (bytes) => {
      sent += bytes.toString('latin1');
      far.write(bytes);
    });
    far.on('data', (bytes) => near.write(bytes));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
    sockets.push(near, far);
    answering.push(far);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP address is never a string
  const own = new URL(url);
  own.host = `127.0.0.1:${port}`;
  return {
    url: own.href,
    hold() {
      sent = '';
      for (const socket of answering) socket.pause();
    },
    sent: () => sent,
    release() {
      for (const socket of answering) socket.resume();
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

let server: TestDatabase;
let relay: Relay;
let database: Database;
beforeAll(async () => {
  server = await testDatabase();
  relay = await relayTo(server.url);
  database = new Database(relay.url, { maxConnections: 1 });
  await database.ping(); // opens its connection
});
afterEach(() => relay.release());
afterAll(async () => {
  await database?.close();
  await relay?.close();
  await server?.close();
});

/** Milliseconds; less than the timeout of a read. */
const SENT_MS = 15_000;

test('a single read is sent as a whole before any of it is answered', async () => {
  relay.hold();
  const reading = database.asUser('ada').query('SELECT 1 AS first');
  reading.catch(() => undefined); // awaited below
  await until(() => relay.sent().includes('COMMIT'), SENT_MS);
  relay.release();
  expect(await reading).toEqual([{ first: 1 }]);
});

test('the first of several statements is sent together with the begin of their transaction', async () => {
  relay.hold();
  const reading = database.asUser('ada').statements((db) => db.query('SELECT 2 AS second'));
  reading.catch(() => undefined); // awaited below
  await until(() => /BEGIN[^]*AS second/.test(relay.sent()), SENT_MS);
  relay.release();
  expect(await reading).toEqual([{ second: 2 }]);
});

test('a single read needs one write to the connection', async () => {
  const toServer = Number(new URL(relay.url).port);
  const writes = [
    vi.spyOn(Socket.prototype, '_write'),
    vi.spyOn(Socket.prototype, '_writev' as '_write'), // optional in the types, like in every stream
  ];
  const count = () =>
    writes
      .flatMap(({ mock }) => mock.contexts)
      .filter((to) => to instanceof Socket && to.remotePort === toServer).length;
  const read = () => database.asUser('ada').query('SELECT 3 AS third');
  try {
    expect(await read()).toEqual([{ third: 3 }]);
    expect(count()).toBe(1);
    await database.asUser('ada').statements((db) => db.query('SELECT 4 AS fourth'));
    // The commit follows after the answer.
    expect(count()).toBe(3);
  } finally {
    for (const spy of writes) spy.mockRestore();
  }
});
