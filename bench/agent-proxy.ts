// Measures the rate and the p99 of an agent's address over those of a direct connection to the same gateway.
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Database } from '../src/platform/database/database.js';
import { agentRow } from './support/agent-row.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { Client } from './support/client.js';
import { loadCells, measureLoad, type Round } from './support/measured-load.js';
import { BenchPlatform } from './support/platform.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Minimum share of the direct rate, and maximum number of milliseconds more at the p99. */
const AIM_RATE = 0.5;
const AIM_P99_MS = 1;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '16' },
    warmup: { type: 'string', default: '10' },
  },
});

await runBenchmark(async (atEnd) => {
  const platform = await BenchPlatform.withoutContainers(atEnd);
  const stub = await forkUntilMessage<{ port: number }>('gateway-stub', []);
  atEnd(() => void stub.child.kill());
  const { port } = stub.message;
  const host = `${await runningAgent(platform, port)}.localhost`;

  const ways = [
    { name: "an agent's address", url: platform.webUrl, pid: platform.pidOf('api') },
    { name: '  its gateway', url: `http://127.0.0.1:${port}`, pid: stub.child.pid ?? 0 },
  ] as const;
  const rows: (string | number)[][] = [];
  for (const connections of ['1', options.connections]) {
    const rounds: [Round[], Round[]] = [[], []];
    const measure = ({ pid, url }: (typeof ways)[number], seconds: string) =>
      measureLoad(pid, [
        `${url}/`,
        '',
        connections,
        seconds,
        'one',
        '',
        JSON.stringify([{ host }]),
      ]);
    for (const way of ways) await measure(way, options.warmup);
    for (let round = 0; round < Number(options.rounds); round++) {
      for (const [index, way] of ways.entries()) {
        rounds[index]?.push(await measure(way, options.seconds));
      }
    }
    const of = (list: readonly Round[], value: (round: Round) => number) => median(list.map(value));
    const [proxied, direct] = rounds;
    const rate = of(proxied, (each) => each.perSecond) / of(direct, (each) => each.perSecond);
    const more = of(proxied, ({ p99 }) => p99) - of(direct, ({ p99 }) => p99);
    const aims = [figure(rate), AIM_RATE, figure(more), AIM_P99_MS];
    rows.push([...loadCells(`${ways[0].name}, ${connections}`, proxied), ...aims]);
    rows.push([...loadCells(ways[1].name, direct), '', '', '', '']);
  }
  console.log(
    `\nBy connections, medians of ${options.rounds} rounds of ${options.seconds} s in turns:\n`,
  );
  printTable(
    [
      ...['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each"],
      ...['share of direct', 'aim', 'p99 more, ms', 'aim'],
    ],
    rows,
  );
});

/** Stores a running agent whose gateway has this port. @returns its subdomain. */
async function runningAgent(platform: BenchPlatform, port: number): Promise<string> {
  const web = new Client(platform.webUrl, {});
  const account = { email: 'bench@example.org', password: randomUUID() };
  const { id } = await web.json<{ id: string }>('POST', '/api/register', account);
  web.close();
  const database = new Database(platform.databaseUrl, { maxConnections: 1 });
  const row = { ...agentRow(id, port), status: 'active' as const };
  await database.asUser(id).transaction((db) => db.Agent.create(row));
  await database.close();
  return row.subdomain;
}
