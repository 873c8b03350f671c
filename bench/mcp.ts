// Measures the tool `agents_list` by MCP beside `GET /api/agents` of the backend, with the same credential.
import { parseArgs } from 'node:util';
import { runBenchmark } from './support/cleanups.js';
import { Client } from './support/client.js';
import { loadCells, measureLoad, type Round } from './support/measured-load.js';
import { BenchPlatform } from './support/platform.js';
import { signInWithAgents } from './support/signed-in-user.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Minimum share of the endpoint's rate. */
const AIM = 0.6;
const AGENTS = 10;

const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'agents_list', arguments: {} },
});

/** Port of the first agent; those of `bench:http` are below. */
const FIRST_PORT = 41_000;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '16' },
    // Long enough for V8 to compile the measured code.
    warmup: { type: 'string', default: '10' },
  },
});

interface Way {
  readonly name: string;
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

await runBenchmark(async (atEnd) => {
  const platform = await BenchPlatform.withoutContainers(atEnd);
  const cookie = await signInWithAgents(platform, AGENTS, FIRST_PORT);
  const web = new Client(platform.webUrl, { cookie });
  const { user } = await web.json<{ user: { id: string } }>('GET', '/api/auth/session');
  const { key } = await web.json<{ key: string }>('POST', '/api/keys', { name: 'bench' });
  web.close();

  const internal = {
    authorization: `Bearer ${platform.internalApiKey}`,
    'x-user-id': user.id,
  };
  const tools = '/api/hostmcp/tools';
  const ways: readonly Way[] = [
    { name: 'GET /api/agents', path: '/api/agents', body: '', headers: internal },
    { name: 'agents_list', path: tools, body: CALL, headers: internal },
    {
      name: 'agents_list, with an API key',
      path: tools,
      body: CALL,
      headers: { authorization: `Bearer ${key}` },
    },
  ];
  const pid = platform.pidOf('api');
  const measure = ({ body, headers, path }: Way, seconds: string) => {
    const url = platform.backendUrl + path;
    const sent = ['', options.connections, seconds, 'many', body, JSON.stringify([headers])];
    return measureLoad(pid, [url, ...sent]);
  };
  for (const way of ways) await measure(way, options.warmup);
  const rounds = ways.map((): Round[] => []);
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [index, way] of ways.entries()) {
      rounds[index]?.push(await measure(way, options.seconds));
    }
  }
  const rate = (list: readonly Round[] = []) => median(list.map(({ perSecond }) => perSecond));
  const bare = rate(rounds[0]);
  console.log(
    `\n${AGENTS} agents, ${options.connections} connections, ` +
      `medians of ${options.rounds} rounds of ${options.seconds} s in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each", 'share', 'aim'],
    ways.map(({ name }, index) => [
      ...loadCells(name, rounds[index] ?? []),
      ...(index === 0 ? ['', ''] : [figure(rate(rounds[index]) / bare), AIM]),
    ]),
  );
});
