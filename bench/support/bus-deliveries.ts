import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import { makeBusAgents, signedMessage, type BusAgent } from './bus-agents.js';
import { forkUntilMessage } from './child.js';
import type { AtEnd } from './cleanups.js';
import { Client } from './client.js';
import { makeFolder } from './folder.js';
import { startOwnPostgres } from './own-postgres.js';
import { BenchPlatform } from './platform.js';

const SEND = '/api/underground/bus/send';

/** Pairs of agents: messages of one pair wait for each other. */
const PAIRS = 20;

/** Messages of a turn. */
const TURN = 50;

const ARRIVAL_TIMEOUT_MS = 60_000;

interface Deliveries {
  readonly messages: number;
  /** Messages a second. */
  readonly rate: number;
}

/** Measures the milliseconds from a message's acceptance to its arrival, in turns with the bare handler. */
export async function measureDeliveries(
  atEnd: AtEnd,
  { messages, rate }: Deliveries,
): Promise<{ readonly ours: readonly number[]; readonly bare: readonly number[] }> {
  const arrivals = new Map<string, number>();
  const receiver = http.createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      arrivals.set(String(request.headers['x-bus-message-id']), performance.now());
      response.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  atEnd(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const { port } = receiver.address() as AddressInfo; // TCP: never a string
  const url = `http://127.0.0.1:${port}/`;

  const platform = await BenchPlatform.withoutContainers(atEnd, {
    OUTBOUND_ALLOW: `127.0.0.1:${port}`,
  });
  const { ownerUrl } = await startOwnPostgres(await makeFolder(atEnd), atEnd);
  const bare = await forkUntilMessage<{ port: number }>('bare-bus', [ownerUrl, url]);
  atEnd(() => void bare.child.kill());
  const agents = await makeBusAgents(platform.databaseUrl, 2 * PAIRS);
  const pairs = Array.from({ length: PAIRS }, (_, n) => agents.slice(2 * n, 2 * n + 2));
  const owner = new Client(platform.backendUrl, {
    authorization: `Bearer ${platform.internalApiKey}`,
  });
  for (const [, to] of pairs) {
    await owner.json('PUT', `/api/underground/webhooks/${to?.id}`, { url });
  }
  owner.close();

  const ways = [
    { client: new Client(platform.backendUrl, {}), path: SEND, times: [] as number[] },
    {
      client: new Client(`http://127.0.0.1:${bare.message.port}`, {}),
      path: '/',
      times: [] as number[],
    },
  ] as const;
  atEnd(() => ways.forEach(({ client }) => client.close()));

  async function time(way: (typeof ways)[number], pair: readonly BusAgent[]): Promise<void> {
    const [from, to] = pair;
    if (!from || !to) throw new RangeError('A pair has two agents');
    const { body, messageId } = await signedMessage(from, to);
    await way.client.json('POST', way.path, JSON.parse(body));
    const accepted = performance.now();
    const arrived = await poll(() => Promise.resolve(arrivals.get(messageId)), {
      timeoutMs: ARRIVAL_TIMEOUT_MS,
      everyMs: 20,
    });
    if (arrived === undefined) throw new Error(`The message ${messageId} was not delivered`);
    way.times.push(arrived - accepted);
  }

  // The first turn of each is not measured.
  for (let sent = -TURN; sent < messages; sent += TURN) {
    for (const way of ways) {
      const under = Array.from({ length: TURN }, async (_, n) => {
        await delay((n * 1_000) / rate);
        await time(way, pairs[n % PAIRS] ?? []);
      });
      await Promise.all(under);
      if (sent < 0) way.times.splice(0);
    }
  }
  return { ours: ways[0].times, bare: ways[1].times };
}
