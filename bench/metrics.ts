// Measures the reads of metrics over many samples, and the cost of sampling agents.
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Database } from '../src/platform/database/database.js';
import { runBenchmark } from './support/cleanups.js';
import { obtainEngine } from './support/engine.js';
import { makeFolder } from './support/folder.js';
import { metricReads } from './support/metric-reads.js';
import { fillMetrics } from './support/metric-rows.js';
import { startOwnPostgres } from './support/own-postgres.js';
import { startSampled, type PassCost } from './support/sampled-containers.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Milliseconds of a read, and percent of a core for sampling 100 agents. */
const READ_AIM = 100;
const CPU_AIM = 2;
const MINUTE_S = 60;

const { values: options } = parseArgs({
  options: {
    samples: { type: 'string', default: '10000000' },
    runs: { type: 'string', default: '200' },
    'bare-runs': { type: 'string', default: '3' },
    // 0 leaves out the sampling, which needs an engine.
    agents: { type: 'string', default: '100' },
    passes: { type: 'string', default: '5' },
  },
});

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  await reads(folder, atEnd);
  if (Number(options.agents) > 0) await sampling(folder, atEnd);
});

type AtEnd = Parameters<Parameters<typeof runBenchmark>[0]>[0];

async function reads(folder: string, atEnd: AtEnd): Promise<void> {
  const { ownerUrl, servingUrl } = await startOwnPostgres(folder, atEnd);
  const owner = new pg.Client(ownerUrl);
  await owner.connect();
  atEnd(() => owner.end());
  const database = new Database(servingUrl, { maxConnections: 5, answerTimeoutMs: 0 });
  atEnd(() => database.close());
  console.log('Filling samples ...');
  const filling = performance.now();
  const { agents, samples, sums } = await fillMetrics(owner, database, Number(options.samples));
  console.log(
    `  ${samples} samples of ${agents} agents, and ${sums} sums, in` +
      ` ${figure((performance.now() - filling) / 1_000)} s.\n`,
  );
  const rows: string[][] = [];
  for (const { name, ours, bare } of metricReads(database, owner)) {
    const fast = await times(ours, Number(options.runs));
    const slow = bare ? await times(bare, Number(options['bare-runs'])) : [];
    rows.push([
      name,
      ...[median(fast), quantile(fast, 0.99)].map(figure),
      String(READ_AIM),
      figure(median(slow)),
    ]);
  }
  console.log('Reads for a user with 100 agents, ms:\n');
  printTable(['read', 'p50', 'p99', 'aim', 'bare SQL over samples'], rows);
}

async function sampling(folder: string, atEnd: AtEnd): Promise<void> {
  const engine = await obtainEngine(folder, atEnd);
  const count = Number(options.agents);
  const sampled = await startSampled(engine, count, atEnd);
  await sampled.pass();
  const ours: PassCost[] = [];
  const bare: PassCost[] = [];
  for (let n = 0; n < Number(options.passes); n += 1) {
    const pass = await sampled.pass();
    if (pass.samples !== count) throw new Error(`${pass.samples} of ${count} were measured`);
    ours.push(pass);
    bare.push(await sampled.dockerStats());
  }
  console.log(`${count} containers, once a minute, percent of a core:\n`);
  printTable(
    ['way', 'process', 'engine', 'aim', 'ms a pass'],
    [
      ['the worker', ...costOf(ours)],
      ['docker stats', ...costOf(bare)],
    ],
  );
}

function costOf(passes: readonly PassCost[]): string[] {
  const percent = (of: (cost: PassCost) => number) =>
    figure((median(passes.map(of)) / MINUTE_S) * 100);
  const took = figure(median(passes.map(({ tookMs }) => tookMs)));
  return [percent(({ ours }) => ours), percent(({ engine }) => engine), String(CPU_AIM), took];
}

async function times(work: () => Promise<unknown>, runs: number): Promise<number[]> {
  await work();
  const taken: number[] = [];
  for (let n = 0; n < runs; n += 1) {
    const began = performance.now();
    await work();
    taken.push(performance.now() - began);
  }
  return taken;
}
