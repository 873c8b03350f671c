// Measures the time of file explorer requests on a host folder and in an agent's volume, beside plain
// `git status`.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runBenchmark } from './support/cleanups.js';
import { agentWorkspaces } from './support/files/agent-workspaces.js';
import { hostWorkspaces } from './support/files/host-workspaces.js';
import type { BenchWorkspaces } from './support/files/bench-workspaces.js';
import { makeFolder } from './support/folder.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Milliseconds of a read, and the allowed ratio of a status to plain git. */
const READ_AIM = { host: 2, volume: 10, cold: 1_500 };
const STATUS_AIM = 1.3;

const BYTES = 10_000;

const { values: options } = parseArgs({
  options: {
    in: { type: 'string', default: 'host,volume' },
    runs: { type: 'string', default: '200' },
    statuses: { type: 'string', default: '30' },
    colds: { type: 'string', default: '10' },
    listed: { type: 'string', default: '10000' },
    tracked: { type: 'string', default: '5000' },
  },
});
const runs = Number(options.runs);
const statuses = Number(options.statuses);
const sizes = { listed: Number(options.listed), tracked: Number(options.tracked) };
const text = 'x'.repeat(BYTES);

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const places = options.in.split(',');
  if (places.includes('host')) {
    await measure('on the host', READ_AIM.host, await hostWorkspaces(folder, sizes));
  }
  if (places.includes('volume')) {
    const engine = path.join(folder, 'engine');
    await measure('in a volume', READ_AIM.volume, await agentWorkspaces(engine, sizes, atEnd));
  }
});

async function measure(where: string, readAim: number, of: BenchWorkspaces): Promise<void> {
  const { listed, restart, tracked } = of;
  await listed.write('file.txt', text);
  const reads = await times(runs, () => listed.read('file.txt'));
  const writes = await times(runs, () => listed.write('file.txt', text));
  const trees = await times(statuses, () => listed.tree(4));
  await tracked.gitStatus();
  const ours: number[] = [];
  const plain: number[] = [];
  // In turns, so that other load on the machine affects both equally.
  for (let each = 0; each < statuses; each += 1) {
    ours.push(...(await times(1, () => tracked.gitStatus())));
    plain.push(await of.plainStatus());
  }
  const colds: number[] = [];
  for (let each = 0; restart && each < Number(options.colds); each += 1) {
    await restart();
    colds.push(...(await times(1, () => listed.read('file.txt'))));
  }

  console.log(`${where}, one at a time, ms:\n`);
  const row = (name: string, all: readonly number[], aim: number | '') => [
    ...[name, figure(median(all)), figure(quantile(all, 0.99)), aim],
  ];
  printTable(
    [where, 'p50', 'p99', 'aim of p50'],
    [
      row('read, 10 kB', reads, readAim),
      ...(restart ? [row('read, 10 kB, cold', colds, READ_AIM.cold)] : []),
      row('write, 10 kB', writes, ''),
      row(`tree, ${sizes.listed} files`, trees, ''),
      row(`status, ${sizes.tracked} files`, ours, ''),
      row('  git status', plain, ''),
    ],
  );
  const ratio = figure(median(ours) / median(plain));
  printTable([where, 'ratio', 'aim'], [['status to git status', ratio, STATUS_AIM]]);
}

async function times(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let run = 0; run < count; run += 1) {
    const started = performance.now();
    await work();
    taken.push(performance.now() - started);
  }
  return taken;
}
