// Measures the views of a fleet of 100 agents with a day's work, beside plain statements.
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Database } from '../src/platform/database/database.js';
import { ringOf } from '../src/platform/secrets/key-ring.js';
import { SecretBox } from '../src/platform/secrets/secret-box.js';
import { runBenchmark } from './support/cleanups.js';
import { fleetReads, runBare } from './support/fleet-reads.js';
import { fillFleet } from './support/fleet-rows.js';
import { makeFolder } from './support/folder.js';
import { startOwnPostgres } from './support/own-postgres.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Milliseconds of a read, and the part of the plain statements' rate. */
const READ_AIM = 100;
const RATE_AIM = 0.7;

const { values: options } = parseArgs({ options: { runs: { type: 'string', default: '500' } } });

await runBenchmark(async (atEnd) => {
  const { ownerUrl, servingUrl } = await startOwnPostgres(await makeFolder(atEnd), atEnd);
  const owner = new pg.Client(ownerUrl);
  await owner.connect();
  atEnd(() => owner.end());
  const database = new Database(servingUrl, { maxConnections: 5 });
  atEnd(() => database.close());
  const work = await fillFleet(owner);
  const rows: string[][] = [];
  for (const { bare, name, ours } of fleetReads(
    database,
    new SecretBox(ringOf(Buffer.alloc(32))),
  )) {
    const [us, plain] = await alternating(Number(options.runs), ours, () => runBare(owner, bare));
    const rate = (taken: readonly number[]) =>
      (1_000 * taken.length) / taken.reduce((sum, ms) => sum + ms, 0);
    rows.push([
      ...[name, figure(median(us)), figure(quantile(us, 0.99)), String(READ_AIM)],
      ...[figure(rate(us)), figure(rate(plain)), figure(rate(us) / rate(plain)), String(RATE_AIM)],
    ]);
  }
  console.log(`Views of a user with 100 agents and ${work} operations, runs and turns of a day:\n`);
  printTable(['view', 'p50, ms', 'p99', 'aim', 'a second', 'bare', 'ratio', 'aim'], rows);
});

/** Runs two pieces of work in turns. Returns the milliseconds of each run. */
async function alternating(
  runs: number,
  ...works: readonly [() => Promise<unknown>, () => Promise<unknown>]
): Promise<[number[], number[]]> {
  const taken: [number[], number[]] = [[], []];
  for (const work of works) await work();
  for (let n = 0; n < runs; n += 1) {
    for (const [which, work] of works.entries()) {
      const began = performance.now();
      await work();
      taken[which]?.push(performance.now() - began);
    }
  }
  return taken;
}
