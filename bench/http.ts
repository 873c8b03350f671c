// Measures the rate of the web API relative to a bare Koa handler with the same queries.
import { parseArgs } from 'node:util';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { BenchPlatform } from './support/platform.js';
import { loadCells, measureLoad, type Round } from './support/measured-load.js';
import { signInWithAgents } from './support/signed-in-user.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Minimum share of the bare handler's rate. */
const AIM = 0.8;
const AGENTS = 10;

/** Endpoints with a rate limit for each client get their load from many clients, as through a proxy. */
const ENDPOINTS = [
  { path: '/api/agents', clients: 'many' },
  { path: '/api/auth/session', clients: 'one' },
] as const;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '16' },
    // Long enough for V8 to compile the measured code.
    warmup: { type: 'string', default: '10' },
  },
});

await runBenchmark(async (atEnd) => {
  const platform = await BenchPlatform.withoutContainers(atEnd);
  const cookie = await signInWithAgents(platform, AGENTS);
  const bare = await forkUntilMessage<{ port: number }>('bare-server', [], {
    env: { ...process.env, DATABASE_URL: platform.databaseUrl },
  });
  atEnd(() => void bare.child.kill());
  const servers = [
    { url: platform.webUrl, pid: platform.pidOf('api') },
    { url: `http://127.0.0.1:${bare.message.port}`, pid: bare.child.pid ?? 0 },
  ] as const;

  const rows: (string | number)[][] = [];
  for (const { path, clients } of ENDPOINTS) {
    const rounds: [Round[], Round[]] = [[], []];
    const measure = ({ url, pid }: { url: string; pid: number }, seconds: string) =>
      measureLoad(pid, [url + path, cookie, options.connections, seconds, clients]);
    for (const server of servers) await measure(server, options.warmup);
    for (let round = 0; round < Number(options.rounds); round++) {
      for (const [index, server] of servers.entries()) {
        rounds[index]?.push(await measure(server, options.seconds));
      }
    }
    const rate = ([...list]: Round[]) => median(list.map(({ perSecond }) => perSecond));
    const ratio = rate(rounds[0]) / rate(rounds[1]);
    rows.push([...loadCells(path, rounds[0]), figure(ratio), AIM]);
    rows.push([...loadCells('  bare Koa handler', rounds[1]), '', '']);
  }
  console.log(
    `\n${AGENTS} agents, ${options.connections} connections, ` +
      `medians of ${options.rounds} rounds of ${options.seconds} s in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each", 'share of bare', 'aim'],
    rows,
  );
});
