// Measures messages of the bus: those accepted a second over a bare Koa handler with one recovered signature and
// one insert, and the time from acceptance to delivery.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { forkUntilMessage } from './support/child.js';
import { makeBusAgents, signedMessages } from './support/bus-agents.js';
import { runBenchmark, type AtEnd } from './support/cleanups.js';
import { measureDeliveries } from './support/bus-deliveries.js';
import { makeFolder } from './support/folder.js';
import { measureInTurns } from './support/in-turns.js';
import { loadCells } from './support/measured-load.js';
import { startPaidApi } from './support/paid-api.js';
import { writeSentOnce } from './support/sent-once.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Minimum share of the bare handler's rate. */
const AIM_ACCEPTED = 0.7;
/** Maximum milliseconds from acceptance to delivery, p99. */
const AIM_DELIVERED_MS = 250;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    /** Messages of each round, sent once each. */
    messages: { type: 'string', default: '2000' },
    connections: { type: 'string', default: '16' },
    /** Agents, each of its own owner. */
    agents: { type: 'string', default: '100' },
    /** Messages whose delivery is timed, and those sent a second. */
    deliveries: { type: 'string', default: '600' },
    rate: { type: 'string', default: '20' },
  },
});

await runBenchmark(async (atEnd) => {
  await printAccepted(atEnd);
  await printDelivered(atEnd);
});

async function printAccepted(atEnd: AtEnd): Promise<void> {
  const folder = await makeFolder(atEnd);
  const api = await startPaidApi(folder, atEnd);
  const agents = await makeBusAgents(api.servingUrl, Number(options.agents));
  const bare = await forkUntilMessage<{ port: number }>('bare-bus', [api.ownerUrl]);
  atEnd(() => void bare.child.kill());
  const [ours = [], theirs = []] = await measureInTurns(
    [
      { url: `${api.backendUrl}/api/underground/bus/send`, pid: api.pid },
      { url: `http://127.0.0.1:${bare.message.port}/`, pid: bare.child.pid ?? 0 },
    ],
    { connections: options.connections, rounds: Number(options.rounds) },
    async () => {
      const file = path.join(folder, 'messages');
      writeSentOnce(file, await signedMessages(agents, Number(options.messages)));
      return file;
    },
  );
  const rate = (list: typeof ours) => median(list.map(({ perSecond }) => perSecond));
  console.log(
    `\n${options.connections} connections, ` +
      `medians of ${options.rounds} rounds of ${options.messages} messages in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each", 'messages over it', 'aim'],
    [
      [...loadCells('accepted messages', ours), '', ''],
      [...loadCells('  bare Koa handler', theirs), figure(rate(ours) / rate(theirs)), AIM_ACCEPTED],
    ],
  );
}

async function printDelivered(atEnd: AtEnd): Promise<void> {
  const { bare, ours } = await measureDeliveries(atEnd, {
    messages: Number(options.deliveries),
    rate: Number(options.rate),
  });
  const row = (name: string, times: readonly number[], aim: number | '') => [
    name,
    ...[0.5, 0.99, 1].map((share) => figure(quantile(times, share))),
    aim,
  ];
  console.log(
    `\n${options.deliveries} messages, ${options.rate} a second, from acceptance to delivery in ms:\n`,
  );
  printTable(
    ['way', 'p50', 'p99', 'most', 'aim for p99'],
    [row('delivery', ours, AIM_DELIVERED_MS), row('  bare: posted after the insert', bare, '')],
  );
}
