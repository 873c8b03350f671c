import { createHash } from 'node:crypto';
import { TABLES } from '../../../src/platform/database/models.js';
import { inSnakeCase, type Table } from '../../../src/platform/database/schema/table.js';

/** Values to INSERT for a user's row number `n`. */
export type RowOf = (user: string, n: number) => Record<string, string | number>;

const now = '2026-01-01T00:00:00Z';
const uuidOf = (user: string, n: number) =>
  createHash('sha256').update(`${user} ${n}`).digest('hex').slice(0, 32);

/** Returns a number for columns that are unique across users. */
const numberOf = (user: string, n: number) => Number.parseInt(uuidOf(user, n).slice(0, 12), 16);

/** Both parties of a message: an agent and itself. */
const bothOf = (user: string) => ({
  from_agent: `${user}-agent-1`,
  from_user: user,
  to_agent: `${user}-agent-1`,
  to_user: user,
});

/** Values for columns that accept only some values of their type. */
const PARTICULARS: Readonly<Record<string, RowOf>> = {
  users: (user, n) => ({
    id: n === 1 ? user : `${user}-${n}`,
    email: `${user}-${n}@example.test`,
  }),
  sessions: () => ({ method: 'password', expires_at: '2100-01-01T00:00:00Z' }),
  risc_events: (user, n) => {
    const id = n === 1 ? user : `${user}-${n}`;
    return { jti: id, id, matching: 'subject' };
  },
  data_feeds: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  processor_events: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  provider_webhooks: (user, n) => ({ id: n === 1 ? user : `${user}-${n}`, kind: 'video' }),
  reset_mail_stops: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  identities: () => ({ kind: 'google' }),
  unlinked_identities: () => ({ kind: 'google' }),
  subscription_checkouts: () => ({ kind: 'plan', plan: 'solo' }),
  // A user has one grant.
  subscriptions: (user, n) => ({
    plan: 'solo',
    status: 'active',
    ...(n > 1 && { source: 'processor', processor_id: `sub_${user}_${n}` }),
  }),
  // Money comes from an account of the platform.
  ledger_accounts: (user, n) => ({ name: `user:${user}:account-${n}`, currency: 'usd' }),
  ledger_transfers: (user) => ({
    debit: 'referrals',
    credit: `user:${user}:account-1`,
    currency: 'usd',
  }),
  ledger_holds: (user) => ({
    debit: `user:${user}:account-1`,
    credit: 'referrals',
    currency: 'usd',
  }),
  installations: () => ({ mode: 'home', status: 'inactive' }),
  agents: (user, n) => ({ id: `${user}-agent-${n}`, plan: 'solo' }),
  payment_claims: (user, n) => ({ hash: `0x${uuidOf(user, n).repeat(2)}` }),
  clones: (user, n) => ({ id: `${user}-agent-${n}`, specialization: 'general' }),
  agent_secrets: (_, n) => ({ kind: n === 1 ? 'gateway-token' : 'ai-token' }),
  agent_credentials: () => ({ state: 'present' }),
  agent_archives: () => ({ reason: 'reset-memory' }),
  operations: () => ({ kind: 'start' }),
  watchdog_transitions: () => ({ from_state: 'running', to_state: 'degraded', cause: 'exit' }),
  messages: () => ({ role: 'user' }),
  scheduled_tasks: (user, n) => ({ id: `${user}-task-${n}` }),
  scheduled_task_runs: (user, n) => ({ task_id: `${user}-task-${n}`, status: 'running' }),
  agent_emails: () => ({ status: 'answered' }),
  agent_samples: (_, n) => ({ at: `2026-01-0${n}T00:00:00Z` }),
  agent_sample_sums: (_, n) => ({ step: 3_600, at: `2026-01-0${n}T00:00:00Z` }),
  usage_hourly: (_, n) => ({ hour: `2026-01-0${n}T00:00:00Z` }),
  notifications: (user) => ({ agent_id: user, channel: 'discord', status: 'sent' }),
  pending_notifications: (user) => ({ agent_id: `${user}-agent-1` }),
  hosts: (user, n) => ({
    id: n === 1 ? user : `${user}-${n}`,
    first_port: 19_100,
    last_port: 19_999,
  }),
  idempotency_keys: (user) => ({ caller: user, state: 'running' }),
  kept_answers: (user, n) => ({ owner: n === 1 ? user : `${user}-${n}` }),
  admin_links: (user, n) => ({ email: n === 1 ? user : `${user}-${n}` }),
  mails: (user, n) => ({ kind: 'reset-password', address: n === 1 ? user : `${user}-${n}` }),
  mail_tokens: () => ({ kind: 'reset-password' }),
  sign_in_attempts: (user, n) => ({ subject: n === 1 ? user : `${user}-${n}` }),
  farcaster_tokens: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  wallets: (user, n) => ({
    agent_id: `${user}-agent-${n}`,
    kind: 'agent',
    address: `0x${uuidOf(user, n)}${'0'.repeat(8)}`,
  }),
  royalty_splits: (user, n) => ({ id: numberOf(user, n), status: 'completed' }),
  royalty_payouts: (user, n) => ({ split_id: numberOf(user, n), status: 'pending' }),
  // Only the user id identifies the owner.
  payment_sessions: (user, n) => ({
    id: uuidOf(user, n),
    token_end: 'end',
    token_hash: `hash-${uuidOf(user, n)}`,
    sealed_token: `sealed-${uuidOf(user, n)}`,
    address: `0x${uuidOf(user, n)}${'0'.repeat(8)}`,
    escrow: `0x${'e'.repeat(40)}`,
    hold_id: `0x${uuidOf(user, n).repeat(2)}`,
    nonce: `0x${uuidOf(user, n).repeat(2)}`,
  }),
  payment_vouchers: (user, n) => ({
    id: n === 1 ? user : `${user}-${n}`,
    session_id: uuidOf(user, n),
  }),
  swarms: (user, n) => ({
    id: `${user}-swarm-${n}`,
    strategy: 'parallel',
    status: 'completed',
    merge: 'done',
    settled_at: now,
  }),
  radio_streams: () => ({ format: 'mp3' }),
  videos: () => ({ status: 'completed', settled_at: now }),
  video_days: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  swarm_members: (user, n) => ({
    swarm_id: `${user}-swarm-1`,
    agent_id: `${user}-agent-${n}`,
    status: 'done',
  }),
  // A row of a tenant's own; a public one is seen by all, through `find_skills`.
  skills: (user, n) => ({ id: uuidOf(user, n), visibility: 'private' }),
  skill_versions: (user, n) => ({ skill_id: uuidOf(user, 1), version: n, tags: '{}' }),
  agent_skills: (user) => ({ skill_id: uuidOf(user, 1), state: 'present' }),
  bus_messages: (user, n) => ({
    id: numberOf(user, n),
    ...bothOf(user),
    service: 'negotiation',
  }),
  bus_threads: (user) => ({
    ...{ agent_a: `${user}-agent-1`, user_a: user, agent_b: `${user}-agent-1`, user_b: user },
    state: 'requested',
  }),
  bus_amplifications: (user) => bothOf(user),
  invite_codes: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  used_nonces: (user, n) => ({ id: n === 1 ? user : `${user}-${n}` }),
  gas_reservations: (user, n) => ({ id: uuidOf(user, n) }),
  underground_events: (user, n) => ({ id: numberOf(user, n) }),
  x402_payments: (user, n) => ({
    id: uuidOf(user, n),
    agent_id: `${user}-agent-1`,
    recipient: `of ${user}`,
    currency: 'USDC',
  }),
  payments: (user, n) => ({ id: n === 1 ? user : `${user}-${n}`, signer: `0x${'a'.repeat(40)}` }),
  transactions: (user, n) => ({ hash: n === 1 ? user : `${user}-${n}`, purpose: 'fill' }),
  payment_settlements: (user, n) => ({
    session_id: uuidOf(user, n),
    cumulative: n,
    kind: 'settle',
    payment: n === 1 ? user : `${user}-${n}`,
    state: 'failed',
    retry_at: now,
    ended_at: now,
  }),
};

/** Returns a value of the column's type, given by its Sequelize name. */
function valueOf(name: string, type: string, user: string, n: number): string | number {
  if (name === 'user_id') return user;
  if (name === 'agent_id') return `${user}-agent-1`;
  const values: Readonly<Record<string, string | number>> = {
    TEXT: `${user}-${name}-${n}`,
    STRING: `${user}-${name}-${n}`,
    UUID: uuidOf(user, n),
    BOOLEAN: 'true',
    DATE: now,
    DATEONLY: `2026-01-0${n}`,
    JSONB: '{}',
  };
  return values[type] ?? n;
}

/** Returns rows with a value in every required column and in the owner column. */
function rowOf({ name: table, columns, policy }: Table): RowOf {
  return (user, n) => {
    const values = Object.entries(columns).map(([property, { needed, stamped, stored }]) => {
      const name = inSnakeCase(property);
      if (!needed && stamped === undefined && name !== policy.owner) return [];
      const { type } = stored;
      return [[name, valueOf(name, typeof type === 'string' ? type : type.key, user, n)]];
    });
    return { ...Object.fromEntries(values.flat()), ...PARTICULARS[table]?.(user, n) };
  };
}

const FIRST = ['users', 'agents', 'royalty_splits', 'payment_sessions', 'scheduled_tasks'];
const LAST = ['account_deletions'];

/** Sorts referenced tables first, and account deletions, which block other rows, last. */
const rank = ({ name }: Table) =>
  [...FIRST, LAST.includes(name) ? undefined : name, ...LAST].indexOf(name);

/** Row builders by table, in an order that satisfies references. */
export const ROWS: Readonly<Record<string, RowOf>> = Object.fromEntries(
  TABLES.toSorted((a, b) => rank(a) - rank(b)).map((table) => [table.name, rowOf(table)]),
);

/** Returns the column that names a row's owner, or a substitute in tables without an owner. */
export function ownerColumn(table: string): string {
  const owner = TABLES.find(({ name }) => name === table)?.policy.owner;
  const wouldBe: Readonly<Record<string, string>> = {
    idempotency_keys: 'caller',
    kept_answers: 'owner',
    notifications: 'agent_id',
    admin_links: 'email',
    sign_in_attempts: 'subject',
    payment_vouchers: 'id',
    transactions: 'hash',
    payment_settlements: 'payment',
    mails: 'address',
    mail_tokens: 'user_id',
  };
  return wouldBe[table] ?? owner ?? 'id';
}

/** Tables of the platform: users reach no row of them, not even "their own". */
export const PLATFORM_TABLES: readonly string[] = TABLES.filter(
  ({ policy }) => policy.owner === undefined,
).map(({ name }) => name);

export function insertSql(table: string, row: Record<string, string | number>): string {
  const values = Object.values(row).map((value) =>
    typeof value === 'number' ? value : `'${value.replaceAll("'", "''")}'`,
  );
  return `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${values.join(', ')})`;
}
