// @module-tag attack
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { RETAINED, type RetainedKind } from '../../src/retention/retained.js';
import { queryRows } from '../platform/database/catalog.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

/** The end of a table's rows. */
type Retention =
  /** Removed by `enforceRetention`. */
  | { readonly kind: RetainedKind }
  /** Deleted with the row that they belong to, by a foreign key. */
  | { readonly with: string }
  /** Deleted by a function of the database. */
  | { readonly by: string }
  /** Deleted by the statement or the model in a file of `src` or `worker`. */
  | { readonly in: string }
  /** Kept permanently, for this reason. */
  | { readonly kept: string };

interface Bound {
  /** The limit on what requests add. */
  readonly most: string;
  readonly retention: Retention;
}

const bound = (most: string, retention: Retention): Bound => ({ most, retention });
const BY_PLAN = 'agents of a plan';
const BY_CALLS = 'rate limits, for the time of the retention';

/** Every table, with the limit on its rows or bytes and the end of its rows. */
const BOUNDS: Readonly<Record<string, Bound>> = {
  // Accounts and sign-in
  users: bound('registrations of an address; unused ones for 90 days', { kind: 'accounts' }),
  identities: bound('20 for each user', { with: 'users' }),
  unlinked_identities: bound('1,000 for each user', {
    with: 'users',
  }),
  sessions: bound('100 for each user', { kind: 'sessions' }),
  api_keys: bound('50 for each user', { with: 'users' }),
  subscriptions: bound('one for each user, and those bought', { with: 'users' }),
  provider_keys: bound('one for each user and AI provider', { with: 'users' }),
  installations: bound('one for each account, and 10,000', { by: 'remove_installation' }),
  invite_codes: bound('made by the operator, for a year at most', { kind: 'invites' }),
  account_deletions: bound('one for each user', { with: 'users' }),
  admin_links: bound('one for each address that operators name', {
    in: 'src/accounts/accounts/admin-links.ts',
  }),
  sign_in_attempts: bound('each attempt removes more than it adds', { by: 'count_sign_in' }),
  sign_in_hosts: bound('20 for each user', { with: 'users' }),
  used_nonces: bound(BY_CALLS, { kind: 'nonces' }),
  farcaster_tokens: bound('20 for each Farcaster account', { kind: 'farcaster' }),
  risc_events: bound('signed by the identity provider', { kind: 'security-events' }),
  checkouts: bound('30 a minute for each user', { kind: 'checkouts' }),
  subscription_checkouts: bound('30 a minute for each user', { kind: 'plan-checkouts' }),
  data_feeds: bound('one for each feed of the operator', { kind: 'data-feeds' }),
  processor_events: bound('signed by the payment processor', { kind: 'processor-events' }),
  provider_webhooks: bound('signed by a provider', { kind: 'provider-webhooks' }),
  reset_mail_stops: bound('signed by the identity provider', { kind: 'reset-mail-stops' }),
  mails: bound('five links, and 60 notices, of a kind an hour to one address', { kind: 'mails' }),
  mail_tokens: bound('one of a kind for each user', { kind: 'mail-tokens' }),

  // Agents
  agents: bound(BY_PLAN, { kind: 'agents' }),
  agent_secrets: bound('two for each agent', { with: 'agents' }),
  agent_credentials: bound('50 for each agent', { with: 'agents' }),
  skills: bound('100 for each user', { with: 'users' }),
  skill_versions: bound('20 for each skill', { kind: 'skill-versions' }),
  agent_skills: bound('one for each agent and skill, and those of operations in progress', {
    with: 'agents',
  }),
  agent_archives: bound('five for each agent', { with: 'agents' }),
  agent_volumes: bound('the memory and the archives of each agent', { with: 'agents' }),
  operations: bound(BY_CALLS, { kind: 'operations' }),
  watchdog_transitions: bound('500 for each agent', { kind: 'transitions' }),
  messages: bound('64 MiB for each agent', { kind: 'messages' }),
  scheduled_tasks: bound('100 for each user', { with: 'agents' }),
  scheduled_task_runs: bound('100 for each task', { kind: 'task-runs' }),
  agent_emails: bound('600 an hour for each agent', { kind: 'emails' }),
  agent_verifications: bound('10 a minute for each user', { kind: 'verifications' }),
  radio_streams: bound('20 for each user', { with: 'users' }),
  swarms: bound('200 for each user', { kind: 'swarms' }),
  videos: bound('20 a day for each user', { kind: 'videos' }),
  video_days: bound('one for each of two days', { in: 'src/videos/videos.ts' }),
  swarm_members: bound('20 for each swarm', { with: 'swarms' }),
  bus_webhooks: bound('one for each agent', { with: 'agents' }),
  bus_counts: bound('one for each user', { with: 'users' }),
  bus_messages: bound('256 MiB for each owner', { kind: 'bus-messages' }),
  bus_threads: bound('one for each message', { kind: 'bus-threads' }),
  bus_amplifications: bound('one for each message', { kind: 'bus-amplifications' }),
  bus_signatures: bound('requests that wait for a signature', { kind: 'bus-signatures' }),
  heartbeats: bound('one for each user', { with: 'users' }),
  clones: bound('one for each agent', { with: 'agents' }),
  hosts: bound('written only by workers', { in: 'worker/finish-removals.ts' }),
  pending_notifications: bound('one for each event of an agent', {
    in: 'src/notifications/outbox.ts',
  }),
  notifications: bound('20 sends a minute', { in: 'src/notifications/notification-log.ts' }),

  // Records of requests
  idempotency_keys: bound('16 MiB of answers for each owner, 4 GiB in all', { kind: 'answers' }),
  kept_answers: bound('one for each owner of answers', { kind: 'sums-of-answers' }),
  audit_log: bound(BY_CALLS, { kind: 'audit' }),
  usage_logs: bound('quotas of tokens', { kind: 'usage' }),
  usage_pending: bound('one for each call until it is added up', { by: 'roll_up_usage' }),
  quota_reservations: bound('calls in flight', { by: 'settle_abandoned' }),
  usage_daily: bound('one for each day, agent and model', {
    kept: 'sums for reports and invoices',
  }),
  usage_hourly: bound('one for each hour and agent', { kind: 'hourly-usage' }),
  agent_samples: bound('one a minute for each agent', { kind: 'samples' }),
  agent_sample_sums: bound('four for each sample at most', { kind: 'sample-sums' }),
  tool_usage_daily: bound('500 for each day and agent', { kind: 'tool-usage' }),
  token_quotas: bound('one for each user and month', { kept: 'sums for reports and invoices' }),

  // Money
  ledger_accounts: bound('two for each user and each deposit', { kept: 'bookkeeping' }),
  ledger_transfers: bound('one for each movement of money', { kept: 'bookkeeping' }),
  ledger_holds: bound('covered by money', { kind: 'holds' }),
  wallets: bound('one for each user and agent, and 20 imported', {
    kept: 'the platform may have the only key',
  }),
  payment_claims: bound('one for each payment on a chain', { kept: 'a payment counts once' }),
  gas_reservations: bound('the gas of a day, for each owner and for all', { kind: 'gas' }),
  x402_payments: bound('the dollars of a day, of at least a millionth each, and rate limits', {
    kind: 'x402-payments',
  }),
  payments: bound('reserved gas, a deposit or the balance of a wallet', { kind: 'payments' }),
  transactions: bound('nine for each payment', { kind: 'payments' }),
  payment_sessions: bound('one open session for each wallet, with a deposit', {
    kind: 'payment-sessions',
  }),
  payment_vouchers: bound('paid by a deposit', { kind: 'payment-sessions' }),
  payment_settlements: bound('paid by a deposit', { kind: 'payment-sessions' }),
  underground_events: bound('1,000 for each agent', { kind: 'events' }),
  royalty_splits: bound('100 open ones for each user, paid by a wallet', { with: 'users' }),
  royalty_payouts: bound('100 for each split', { with: 'royalty_splits' }),
};

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const owner = <Row extends object>(sql: string) => queryRows<Row>(database.ownerUrl, sql);

test('every table of the database has a bound and a retention', async () => {
  const tables = await owner<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
        AND relkind IN ('r', 'p', 'm', 'f') AND relname <> 'schema_migrations'`,
  );
  expect(tables.map(({ name }) => name).sort()).toEqual(Object.keys(BOUNDS).sort());
});

test('every kind of retention removes rows of a table', () => {
  const kinds = Object.values(BOUNDS).flatMap(({ retention }) =>
    'kind' in retention ? [retention.kind] : [],
  );
  expect([...new Set(kinds)].sort()).toEqual([...RETAINED].sort());
});

describe('a retention has its declared meaning', () => {
  test.each(
    Object.entries(BOUNDS).flatMap(([table, { retention }]) =>
      'with' in retention ? [[table, retention.with] as const] : [],
    ),
  )('rows of %s are deleted with their row of %s', async (table, other) => {
    const keys = await owner(
      `SELECT FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'c'
          AND conrelid = '${table}'::regclass AND confrelid = '${other}'::regclass`,
    );
    expect(keys).not.toEqual([]);
  });

  test.each(
    Object.entries(BOUNDS).flatMap(([table, { retention }]) =>
      'by' in retention ? [[table, retention.by] as const] : [],
    ),
  )('rows of %s are deleted by the function %s', async (table, name) => {
    const found = await owner(
      `SELECT FROM pg_proc WHERE proname = '${name}' AND prosrc LIKE '%DELETE FROM public.${table} %'`,
    );
    expect(found).toHaveLength(1);
  });

  test.each(
    Object.entries(BOUNDS).flatMap(([table, { retention }]) =>
      'in' in retention ? [[table, retention.in] as const] : [],
    ),
  )('rows of %s are deleted in %s', async (table, file) => {
    const source = await readFile(path.join(projectRoot, file), 'utf8');
    expect(source).toMatch(new RegExp(`DELETE FROM ${table}\\b|\\.destroy\\(`));
  });
});
