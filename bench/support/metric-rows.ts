import type pg from 'pg';
import { rollUpUsage } from '../../src/ai/usage/rollups.js';
import type { Database } from '../../src/platform/database/database.js';

/** The user whose metrics are read, one of many. */
export const READER = 'user-0';
const AGENTS_OF_USER = 100;

/** Minutes for which samples, and days for which their sums are kept. */
const MINUTES = 48 * 60;
const DAYS = 100;
/** Steps by seconds. */
const STEPS: readonly (readonly [step: number, count: number])[] = [
  [300, MINUTES / 5],
  [3_600, DAYS * 24],
  [14_400, DAYS * 6],
  [86_400, DAYS],
];

/** Turns, transitions and AI calls of each of the reader's agents. */
const TURNS = 300;
const TRANSITIONS = 100;
const CALLS = 1_000;

export interface FilledMetrics {
  readonly agents: number;
  readonly samples: number;
  readonly sums: number;
}

const USERS = `
  INSERT INTO users (id, email, name, referral_code, is_admin, created_at, updated_at)
  SELECT 'user-' || n, 'user-' || n || '@example.org', 'user', 'CODE-' || n, n = 0, now(), now()
    FROM generate_series(0, ($1::int - 1) / ${AGENTS_OF_USER}) AS n`;

const AGENTS = `
  INSERT INTO agents (id, user_id, name, subdomain, plan, model, ai_provider, status, host,
                      created_at, updated_at)
  SELECT gen_random_uuid(), 'user-' || n / ${AGENTS_OF_USER}, 'agent-' || n, 'agent-' || n, 'network', 'auto',
         'openai', 'active', 'local', now() - interval '100 days', now()
    FROM generate_series(0, $1::int - 1) AS n`;

/** Minute by minute, as workers store them. */
const SAMPLES = `
  INSERT INTO agent_samples (agent_id, at, user_id, cpu_percent, memory_bytes, memory_limit_bytes,
                             network_in, network_out)
  SELECT a.id, date_trunc('minute', now()) - n * interval '1 minute', a.user_id, random() * 100,
         (random() * 1e9)::bigint, 3221225472, (random() * 1e6)::bigint, (random() * 1e5)::bigint
    FROM generate_series($1::int, $2::int, -1) AS n CROSS JOIN agents a`;

/** Sums of full steps. */
const sumsOf = (step: number) => `
  INSERT INTO agent_sample_sums (agent_id, step, at, user_id, samples, cpu_percent, memory_bytes,
                                 network_in, network_out)
  SELECT a.id, ${step}, date_bin('${step} s', now(), 'epoch') - n * interval '${step} s', a.user_id,
         ${step / 60}, random() * ${step}, random() * 1e9 * ${step / 60}, random() * 1e6 * ${step / 60},
         random() * 1e5 * ${step / 60}
    FROM generate_series($1::int, $2::int, -1) AS n CROSS JOIN agents a`;

const ofReader = (count: number) => `
  FROM agents a CROSS JOIN generate_series(1, ${count}) AS n WHERE a.user_id = '${READER}'`;

const OF_READER = [
  `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, created_at, took_ms)
   SELECT gen_random_uuid(), a.id, a.user_id, 'main', 'assistant', repeat('text ', 200),
          now() - random() * interval '30 days', (random() * 60000)::int ${ofReader(TURNS)}`,
  `INSERT INTO watchdog_transitions (id, agent_id, user_id, from_state, to_state, cause, at)
   SELECT gen_random_uuid(), a.id, a.user_id, 'running',
          (ARRAY['running', 'degraded', 'repairing', 'stopped'])[1 + floor(random() * 4)::int], 'exit',
          now() - random() * interval '30 days' ${ofReader(TRANSITIONS)}`,
  `INSERT INTO usage_logs (call_id, user_id, agent_id, provider, model, input_tokens, output_tokens,
                           cost_usd, endpoint, created_at, tool_calls, tool_completed,
                           tool_successes, tool_ms)
   SELECT gen_random_uuid(), a.user_id, a.id, 'openai', 'gpt', 1000, 100, 0.01, '/test',
          now() - random() * interval '90 days', 1, 1, 1, 500 ${ofReader(CALLS)}`,
];

/** Primary keys and indexes that are dropped before the fill and recreated after it, which is much faster. */
const REMADE: readonly (readonly [table: string, keys: string, indexed: string])[] = [
  ['agent_samples', 'agent_id, at', 'at'],
  ['agent_sample_sums', 'agent_id, step, at', 'step, at'],
];

/** Rows of one statement. */
const AT_ONCE = 200_000;

/** Fills samples of 48 hours, sums of 100 days, and what the reader's agents did. */
export async function fillMetrics(
  owner: pg.Client,
  database: Database,
  samples: number,
): Promise<FilledMetrics> {
  const agents = Math.max(AGENTS_OF_USER, Math.round(samples / MINUTES));
  await owner.query(USERS, [agents]);
  await owner.query(AGENTS, [agents]);
  await owner.query('ANALYZE users, agents');
  for (const [table] of REMADE) {
    await owner.query(
      `ALTER TABLE ${table} DROP CONSTRAINT ${table}_agent_id_user_id_fkey, DROP CONSTRAINT ${table}_pkey;
       DROP INDEX ${table}_at`,
    );
  }
  const perStatement = Math.max(1, Math.floor(AT_ONCE / agents));
  const fill = async (sql: string, count: number) => {
    for (let from = count - 1; from >= 0; from -= perStatement) {
      await owner.query(sql, [from, Math.max(0, from - perStatement + 1)]);
    }
  };
  await fill(SAMPLES, MINUTES);
  for (const [step, count] of STEPS) await fill(sumsOf(step), count);
  for (const [table, keys, indexed] of REMADE) {
    await owner.query(
      `ALTER TABLE ${table} ADD PRIMARY KEY (${keys}),
         ADD FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id) ON DELETE CASCADE;
       CREATE INDEX ${table}_at ON ${table} (${indexed})`,
    );
  }
  for (const sql of OF_READER) await owner.query(sql);
  while ((await rollUpUsage(database)) > 0);
  await owner.query('VACUUM ANALYZE');
  const sums = STEPS.reduce((sum, [, count]) => sum + agents * count, 0);
  return { agents, samples: agents * MINUTES, sums };
}
