import type pg from 'pg';

/** The user whose fleet is read, one of several with the same work. */
export const READER = 'user-0';
const USERS = 5;
const AGENTS_OF_USER = 100;

/** Rows of a day for each user; all together are 10,000. */
const OPERATIONS = 4_000;
const RUNS = 3_000;
const TURNS = 3_000;

const SWARMS = 200;
const MEMBERS = 5;
const MESSAGES = 5_000;
const SPLITS = 100;
const USAGE_DAYS = 31;

const each = (count: number) =>
  `FROM generate_series(0, ${USERS - 1}) u CROSS JOIN generate_series(0, ${count - 1}) n`;
const agentOf = (n: string) => `'agent-' || u || '-' || ${n} % ${AGENTS_OF_USER}`;
const inDay = `now() - random() * interval '1 day'`;

const ROWS = [
  `INSERT INTO users (id, email, name, referral_code, created_at, updated_at)
   SELECT 'user-' || u, 'user-' || u || '@example.org', 'user', 'CODE-' || u, now(), now() ${each(1)}`,
  // Every tenth agent is a founder; the others descend from the agent before.
  `INSERT INTO agents (id, user_id, name, subdomain, plan, model, ai_provider, status, host, generation,
                       parent_agent_id, observed_at, created_at, updated_at)
   SELECT ${agentOf('n')}, 'user-' || u, 'agent-' || n, 'agent-' || u || '-' || n, 'network', 'auto',
          'openai', 'active', 'local', n % 10 + 1, CASE n % 10 WHEN 0 THEN NULL ELSE ${agentOf('(n - 1)')} END,
          now(), now() - interval '100 days' + n * interval '1 hour', now() ${each(AGENTS_OF_USER)}`,
  `INSERT INTO operations (id, agent_id, user_id, kind, status, requested_at, finished_at)
   SELECT gen_random_uuid(), ${agentOf('n')}, 'user-' || u, 'restart', 'succeeded', at, at + interval '2 s'
     FROM (SELECT u, n, ${inDay} AS at ${each(OPERATIONS)}) d`,
  `INSERT INTO scheduled_tasks (id, user_id, agent_id, name, message, schedule, timezone, enabled, set_at,
                                last_run, created_at, updated_at)
   SELECT 'task-' || u || '-' || n, 'user-' || u, ${agentOf('n')}, 'task', 'text', '5m', 'UTC', true, now(),
          now(), now(), now() ${each(AGENTS_OF_USER)}`,
  `INSERT INTO scheduled_task_runs (id, task_id, agent_id, user_id, scheduled_for, started_at, finished_at, status)
   SELECT gen_random_uuid(), 'task-' || u || '-' || n % ${AGENTS_OF_USER}, ${agentOf('n')}, 'user-' || u, at, at,
          at + interval '9 s', 'succeeded' FROM (SELECT u, n, ${inDay} AS at ${each(RUNS)}) d`,
  `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, created_at, took_ms)
   SELECT gen_random_uuid(), ${agentOf('n')}, 'user-' || u, 'main', 'assistant', repeat('text ', 200), ${inDay},
          900 ${each(TURNS)}`,
  `INSERT INTO swarms (id, user_id, name, task, strategy, coordinator_id, status, created_at, settled_at, finished_at)
   SELECT 'swarm-' || u || '-' || n, 'user-' || u, 'swarm', 'text', 'parallel', ${agentOf('n')}, 'completed',
          ${inDay}, now(), now() ${each(SWARMS)}`,
  `INSERT INTO swarm_members (swarm_id, position, user_id, agent_id, status)
   SELECT 'swarm-' || u || '-' || n, m, 'user-' || u, ${agentOf('(n + m)')}, 'done'
     FROM (SELECT u, n, m ${each(SWARMS)} CROSS JOIN generate_series(0, ${MEMBERS - 1}) m) d`,
  `INSERT INTO bus_messages (message_id, action, service, from_agent, from_user, to_agent, to_user, digest,
                             sealed, status, created_at)
   SELECT u || '-' || n, 'AMPLIFY_POST', 'amplification', ${agentOf('n')}, 'user-' || u, ${agentOf('(n * 7)')},
          'user-' || u, 'digest', repeat('sealed ', 100), 'delivered', ${inDay} ${each(MESSAGES)}`,
  `INSERT INTO royalty_splits (user_id, agent_id, request_key, from_address, chain_id, token_address, name,
                               total_amount, status)
   SELECT 'user-' || u, ${agentOf('n')}, n::text, '0x' || u || '-' || n, 1, '0x', 'split', 10, 'completed'
     ${each(SPLITS)}`,
  `INSERT INTO royalty_payouts (split_id, position, user_id, address, share, amount, status, payment)
   SELECT id, p, user_id, '0x' || lpad(to_hex(id * 3 + p), 40, '0'), 1, 1, 'confirmed', 'p'
     FROM royalty_splits CROSS JOIN generate_series(0, 2) p`,
  `INSERT INTO usage_daily (user_id, day, agent_id, provider, model, input_tokens, output_tokens, cost_usd, calls)
   SELECT 'user-' || u, (now() AT TIME ZONE 'UTC')::date - d, ${agentOf('n')}, 'openai', m, 1000, 100, 0.01, 9
     FROM (SELECT u, n, d, m ${each(AGENTS_OF_USER)} CROSS JOIN generate_series(0, ${USAGE_DAYS - 1}) d
             CROSS JOIN unnest(ARRAY['small', 'large']) m) rows`,
];

/** Fills the agents of several users and a day of their work. Returns the reader's rows of work. */
export async function fillFleet(owner: pg.Client): Promise<number> {
  for (const sql of ROWS) await owner.query(sql);
  await owner.query('VACUUM ANALYZE');
  return OPERATIONS + RUNS + TURNS;
}
