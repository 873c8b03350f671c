import { createHash } from 'node:crypto';
import { TABLES } from '../../src/database/models.js';

/** A user's row number `n` in every table: what an INSERT of it takes. */
export type RowOf = (user: string, n: number) => Record<string, string | number>;

const now = '2026-01-01T00:00:00Z';
const uuidOf = (user: string, n: number) =>
  createHash('sha256').update(`${user} ${n}`).digest('hex').slice(0, 32);
const agentOf = (user: string) => `${user}-agent-1`;

const usageSums: RowOf = (user, n) => ({
  user_id: user,
  day: `2026-01-0${n}`,
  agent_id: '',
  provider: 'openai',
  model: 'gpt-4',
  input_tokens: 1,
  output_tokens: 1,
  cost_usd: 1,
  calls: 1,
});

/** One for each table, in an order in which they can be filled. */
export const ROWS: Readonly<Record<string, RowOf>> = {
  users: (user, n) => ({
    id: n === 1 ? user : `${user}-${n}`,
    email: `${user}-${n}@example.test`,
    name: user,
    created_at: now,
    updated_at: now,
  }),
  sessions: (user, n) => ({
    token_hash: `${user}-${n}`,
    user_id: user,
    csrf_token: 'csrf',
    created_at: now,
    expires_at: '2100-01-01T00:00:00Z',
  }),
  subscriptions: (user) => ({
    user_id: user,
    plan: 'solo',
    status: 'active',
    source: 'test',
    period_start: now,
    created_at: now,
    updated_at: now,
  }),
  credit_entries: (user, n) => ({
    user_id: user,
    amount: 1,
    reason: 'referral',
    reference: `${n}`,
    created_at: now,
  }),
  installations: (user) => ({
    user_id: user,
    mode: 'home',
    registered_at: now,
    last_seen: now,
    status: 'inactive',
  }),
  agents: (user, n) => ({
    id: `${user}-agent-${n}`,
    user_id: user,
    name: `agent ${n}`,
    subdomain: `${user}-agent-${n}`,
    plan: 'solo',
    model: 'provider/model',
    ai_provider: 'provider',
    created_at: now,
    updated_at: now,
  }),
  agent_secrets: (user, n) => ({
    agent_id: agentOf(user),
    kind: n === 1 ? 'gateway-token' : 'ai-token',
    user_id: user,
    sealed: 'sealed',
  }),
  agent_credentials: (user, n) => ({
    operation_id: `${user}-operation-${n}`,
    agent_id: agentOf(user),
    user_id: user,
    name: `CREDENTIAL_${n}`,
    sealed: 'sealed',
    state: 'present',
    updated_at: now,
  }),
  agent_archives: (user, n) => ({
    id: `${user}-archive-${n}`,
    agent_id: agentOf(user),
    user_id: user,
    volume: 'volume',
    reason: 'reset-memory',
    created_at: now,
  }),
  operations: (user, n) => ({
    id: `${user}-operation-${n}`,
    agent_id: agentOf(user),
    user_id: user,
    kind: 'start',
    requested_at: now,
  }),
  watchdog_transitions: (user, n) => ({
    id: `${user}-transition-${n}`,
    agent_id: agentOf(user),
    user_id: user,
    from_state: 'running',
    to_state: 'degraded',
    cause: 'exit',
    at: now,
  }),
  messages: (user, n) => ({
    id: `${user}-message-${n}`,
    agent_id: agentOf(user),
    user_id: user,
    conversation: 'main',
    role: 'user',
    content: 'hello',
    created_at: now,
  }),
  heartbeats: (user) => ({
    user_id: user,
    frequency: '3h',
    enabled: 'true',
    scheduled: 'true',
    updated_at: now,
  }),
  notifications: (user, n) => ({
    id: `${user}-${n}`,
    channel: 'discord',
    agent_id: user,
    event: 'degraded',
    status: 'sent',
    created_at: now,
    due_at: now,
  }),
  hosts: (user, n) => ({
    id: n === 1 ? user : `${user}-${n}`,
    capacity: n,
    first_port: 19_100,
    last_port: 19_999,
    engine_available: 'true',
    seen_at: now,
    created_at: now,
    updated_at: now,
  }),
  usage_logs: (user, n) => ({
    call_id: uuidOf(user, n),
    user_id: user,
    provider: 'openai',
    model: 'gpt-4',
    endpoint: '/api/ai/chat',
    created_at: now,
  }),
  token_quotas: (user, n) => ({ user_id: user, month: `2026-0${n}-01`, used: 1, held: 0 }),
  quota_reservations: (user, n) => ({
    call_id: uuidOf(user, n),
    user_id: user,
    month: '2026-01-01',
    tokens: 1,
    expires_at: now,
  }),
  usage_daily: (user, n) => usageSums(user, n),
  usage_pending: (user, n) => usageSums(user, n),
  api_keys: (user, n) => ({
    id: `${user}-key-${n}`,
    user_id: user,
    name: `key ${n}`,
    key_preview: 'sk_abcd...wxyz',
    key_hash: 'hash',
    lookup_hash: `${user}-${n}`,
    created_at: now,
  }),
  audit_log: (user) => ({ actor: user, user_id: user, action: 'test', subject: 'test' }),
  idempotency_keys: (user, n) => ({
    caller: user,
    route: 'POST /api/agents',
    key: `${n}`,
    request_hash: 'hash',
    state: 'running',
    locked_until: now,
    created_at: now,
  }),
};

const tables = TABLES;

/** The column that names whose a row is; in tables of the platform alone, one that would. */
export function ownerColumn(table: string): string {
  const owner = tables.find(({ name }) => name === table)?.policy.owner;
  const wouldBe = { hosts: 'id', idempotency_keys: 'caller', notifications: 'agent_id' };
  return owner ?? wouldBe[table as keyof typeof wouldBe];
}

/** Tables of the platform alone: no user reaches a row of them, not even "their own". */
export const PLATFORM_TABLES: readonly string[] = tables
  .filter(({ policy }) => policy.owner === undefined)
  .map(({ name }) => name);

export function insertSql(table: string, row: Record<string, string | number>): string {
  const values = Object.values(row).map((value) =>
    typeof value === 'number' ? value : `'${value.replaceAll("'", "''")}'`,
  );
  return `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${values.join(', ')})`;
}
