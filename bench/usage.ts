// Measures the response time of dashboards over a year of calls, and the calls logged a second.
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Database } from '../src/platform/database/database.js';
import { rollUpUsage } from '../src/ai/usage/rollups.js';
import { runBenchmark } from './support/cleanups.js';
import { makeFolder } from './support/folder.js';
import { startOwnPostgres } from './support/own-postgres.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';
import { usageQueries } from './support/usage-queries.js';
import { fillUsage, newCalls } from './support/usage-rows.js';

/** Milliseconds for each query, and calls logged a second. */
const QUERY_AIM = 50;
const WRITE_AIM = 5_000;

/** Calls settled in one round trip, as many as the platform settles. */
const BATCH = 200;

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    batches: { type: 'string', default: '500' },
    runs: { type: 'string', default: '100' },
    // Runs of the queries over all calls, which take seconds.
    'bare-runs': { type: 'string', default: '3' },
  },
});

await runBenchmark(async (atEnd) => {
  const { ownerUrl, servingUrl } = await startOwnPostgres(await makeFolder(atEnd), atEnd);
  const owner = new pg.Client(ownerUrl);
  await owner.connect();
  atEnd(() => owner.end());
  const database = new Database(servingUrl, { maxConnections: 1, answerTimeoutMs: 0 });
  atEnd(() => database.close());

  const rows = Number(options.rows);
  console.log(`Filling ${rows} calls ...`);
  const filling = performance.now();
  await fillUsage(owner, rows);
  console.log(`  in ${figure((performance.now() - filling) / 1000)} s. Adding them up ...`);
  const adding = performance.now();
  const sums = await rollUpUsage(database);
  console.log(`  ${sums} sums in ${figure((performance.now() - adding) / 1000)} s.`);
  // Autovacuum would do this within a minute.
  await owner.query('VACUUM ANALYZE usage_daily');

  const ours = await write((calls) => settle(database, calls));
  const { rows: pending } = await owner.query('SELECT FROM usage_pending');
  console.log(`\n${rows} calls of a year, and ${pending.length} sums pending, ms:\n`);
  const figures: string[][] = [];
  for (const query of usageQueries(database)) {
    const fast = await times(query.ours, Number(options.runs));
    const slow = await times(query.bare, Number(options['bare-runs']));
    const ratio = median(slow) / median(fast);
    figures.push([
      query.name,
      ...[median(fast), quantile(fast, 0.99)].map(figure),
      String(QUERY_AIM),
      figure(median(slow)),
      figure(ratio),
    ]);
  }
  printTable(['query', 'p50', 'p99', 'aim', 'over all calls', 'over ours'], figures);

  // Inserts without sums and quotas, last because no report includes these rows.
  await owner.query('ALTER TABLE usage_logs DISABLE TRIGGER usage_logs_noted');
  const bare = await write((calls) => insert(owner, calls));
  console.log(`${options.batches} batches of ${BATCH} calls, one after the other:\n`);
  printTable(
    ['way', 'calls a second', 'p50 ms a batch', 'p99', 'share of bare', 'aim'],
    [
      ['settle_usage', ...ratesOf(ours), figure(median(bare) / median(ours)), WRITE_AIM],
      ['  INSERT alone', ...ratesOf(bare), '', ''],
    ],
  );
});

/** Returns the milliseconds of each batch. */
async function write(batch: (calls: ReturnType<typeof newCalls>) => Promise<number>) {
  const taken: number[] = [];
  for (let n = 0; n < Number(options.batches); n++) taken.push(await batch(newCalls(BATCH)));
  return taken;
}

/** Settles calls as the platform does and releases their holds, which are created beforehand. */
async function settle(database: Database, calls: ReturnType<typeof newCalls>): Promise<number> {
  const held = calls.map(({ callId, userId }) => ({
    callId,
    userId,
    tokens: 2_000,
    extra: 0,
    limit: 1e15,
  }));
  await database.call({ text: 'SELECT count(*) FROM hold_tokens(120, $1)' }, [
    JSON.stringify(held),
  ]);
  const settling = performance.now();
  await database.call({ text: `SELECT settle_usage($1, '{}')` }, [JSON.stringify(calls)]);
  return performance.now() - settling;
}

async function insert(owner: pg.Client, calls: ReturnType<typeof newCalls>): Promise<number> {
  const inserting = performance.now();
  await owner.query(
    `INSERT INTO usage_logs (call_id, user_id, agent_id, provider, model, input_tokens,
                             output_tokens, cost_usd, endpoint, created_at)
     SELECT * FROM jsonb_to_recordset($1) AS r(
       "callId" uuid, "userId" text, "agentId" text, provider text, model text,
       "inputTokens" integer, "outputTokens" integer, "costUsd" numeric, endpoint text,
       at timestamptz)`,
    [JSON.stringify(calls)],
  );
  return performance.now() - inserting;
}

async function times(work: () => Promise<unknown>, runs: number): Promise<number[]> {
  await work();
  const taken: number[] = [];
  for (let run = 0; run < runs; run++) {
    const started = performance.now();
    await work();
    taken.push(performance.now() - started);
  }
  return taken;
}

function ratesOf(taken: readonly number[]): string[] {
  const seconds = taken.reduce((sum, ms) => sum + ms, 0) / 1000;
  const rate = (taken.length * BATCH) / seconds;
  return [rate, median(taken), quantile(taken, 0.99)].map(figure);
}
