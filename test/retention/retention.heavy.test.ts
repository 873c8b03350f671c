import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createRetentionActivities } from '../../activities/retention.js';
import type { Database } from '../../src/platform/database/database.js';
import { RETAINED, type RetainedKind } from '../../src/retention/retained.js';
import { Retention } from '../../src/retention/retention.js';
import { loadSettings } from '../../src/settings.js';
import { agentNames } from '../../src/ai/usage/agent-names.js';
import { usageByTool, usageDaily } from '../../src/ai/usage/reports.js';
import { rollUpUsage } from '../../src/ai/usage/rollups.js';
import { settleUsage } from '../../src/ai/usage/settle-usage.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { testEnvironment } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { usageOf } from '../ai/usage/ledger.js';

const attack = { tags: 'attack' };

let database: TestDatabase;
let retention: Retention;

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const insert = (table: string, row: Record<string, string | number>) =>
  owner(insertSql(table, { ...ROWS[table]?.('ada', 1), ...row }));
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
const idsIn = async (table: string) =>
  (await owner(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id);

/** Removes all old rows of a kind, in as many batches as needed. */
const remove = (what: RetainedKind): Promise<number> =>
  new MockActivityEnvironment().run(createRetentionActivities(retention).removeOldRows, what);

beforeAll(async () => {
  database = await testDatabase();
  const { retention: days } = loadSettings(testEnvironment({ DATABASE_URL: database.url }));
  retention = new Retention(database.db, days);
  await insert('users', {});
});
afterAll(() => database?.close());
beforeEach(async () => {
  await owner('DELETE FROM agents');
  await owner('TRUNCATE usage_logs, usage_daily, usage_pending');
  await agent('ada-agent-1');
});

const agent = (id: string, row: Record<string, string> = {}) =>
  insert('agents', { id, name: id, subdomain: id, ...row });
const removedAgent = (id: string, days: number) =>
  agent(id, { desired: 'deleted', deleted_at: daysAgo(days) });
const operation = (id: string, days: number | undefined, row: Record<string, string> = {}) =>
  insert('operations', {
    id,
    requested_at: daysAgo((days ?? 200) + 1),
    ...(days === undefined
      ? { status: 'running' }
      : { status: 'succeeded', finished_at: daysAgo(days) }),
    ...row,
  });

describe('operations', () => {
  test('removes operations that ended before the retention time', async () => {
    await operation('old', 91);
    await operation('young', 89);
    await operation('open', undefined);
    expect(await remove('operations')).toBe(1);
    expect(await idsIn('operations')).toEqual(['open', 'young']);
    expect(await remove('operations')).toBe(0);
  });

  test('keeps operations that other rows still refer to', async () => {
    await operation('creation', 400, { kind: 'provision' });
    await operation('archived', 400, { kind: 'reset-memory' });
    await insert('agent_archives', { id: 'archived' });
    await operation('credential', 400, { kind: 'configure' });
    await insert('agent_credentials', { operation_id: 'credential' });
    await operation('12345678-of-the-memory-in-use', 400, { kind: 'restore' });
    await operation('way-back', 400, { kind: 'update' });
    await owner(
      `UPDATE agents SET volume = 'agent-ada-agent-1-12345678',
              previous_release = '{"operationId": "way-back"}' WHERE id = 'ada-agent-1'`,
    );
    await operation('nothing', 400, { kind: 'restore' });
    const before = await idsIn('operations');
    expect(await remove('operations')).toBe(1);
    expect(await idsIn('operations')).toEqual(before.filter((id) => id !== 'nothing'));
  });

  test('removes many operations in short batches', async () => {
    await owner(
      `INSERT INTO operations (id, agent_id, user_id, kind, status, requested_at, finished_at)
       SELECT 'op-' || n, 'ada-agent-1', 'ada', 'stop', 'succeeded', now() - interval '1 year',
              now() - interval '1 year' FROM generate_series(1, 2500) AS n`,
    );
    expect(await retention.removeSome('operations')).toBe(1_000);
    const passes = [remove('operations'), remove('operations')];
    const [one = 0, other = 0] = await Promise.all(passes);
    expect(one + other).toBe(1_500);
  });
});

test("removes the watchdog's transitions and messages by their age", async () => {
  await insert('watchdog_transitions', { id: 'old', at: daysAgo(91) });
  await insert('watchdog_transitions', { id: 'young', at: daysAgo(89) });
  expect(await remove('transitions')).toBe(1);
  expect(await idsIn('watchdog_transitions')).toEqual(['young']);
  await insert('messages', { id: 'old', created_at: daysAgo(366) });
  await insert('messages', { id: 'young', created_at: daysAgo(364) });
  expect(await remove('messages')).toBe(1);
  expect(await idsIn('messages')).toEqual(['young']);
});

test('removes verifications by their age, except the current one', async () => {
  const row = (id: string, state: string, days: number) =>
    insert('agent_verifications', { id, state, created_at: daysAgo(days) });
  await row('old', 'past', 91);
  await row('young', 'cancelled', 89);
  await row('in force', 'current', 91);
  expect(await remove('verifications')).toBe(1);
  expect(await idsIn('agent_verifications')).toEqual(['in force', 'young']);
});

test('removes swarms by the time since their end, and keeps unfinished ones', async () => {
  const settled = async (id: string, days: number) => {
    await insert('swarms', { id, settled_at: daysAgo(days) });
  };
  await settled('old', 91);
  await settled('young', 89);
  await insert('swarms', { id: 'open', created_at: daysAgo(91) });
  await queryRows(database.ownerUrl, `UPDATE swarms SET settled_at = NULL WHERE id = 'open'`);
  expect(await remove('swarms')).toBe(1);
  expect(await idsIn('swarms')).toEqual(['open', 'young']);
});

test('removes e-mails by the time since their end, and keeps unfinished ones', async () => {
  for (const [id, days] of [
    ['old', 91],
    ['young', 89],
  ] as const) {
    await insert('agent_emails', { id, provider_id: id, settled_at: daysAgo(days) });
  }
  await insert('agent_emails', { id: 'open', provider_id: 'open', received_at: daysAgo(91) });
  expect(await remove('emails')).toBe(1);
  expect(await idsIn('agent_emails')).toEqual(['open', 'young']);
});

test('removes runs of tasks by the age of their end', async () => {
  await insert('scheduled_tasks', { id: 'task' });
  const row = (id: string, days: number) =>
    insert('scheduled_task_runs', {
      id,
      task_id: 'task',
      status: 'failed',
      finished_at: daysAgo(days),
    });
  await row('old', 91);
  await row('young', 89);
  expect(await remove('task-runs')).toBe(1);
  expect(await idsIn('scheduled_task_runs')).toEqual(['young']);
});

test('removes versions of skills by their age, except the present one', async () => {
  await insert('skills', { id: 'skill', version: 3, visibility: 'private' });
  for (const [version, days] of [
    [1, 91],
    [2, 89],
    [3, 91],
  ] as const) {
    await insert('skill_versions', { skill_id: 'skill', version, created_at: daysAgo(days) });
  }
  expect(await remove('skill-versions')).toBe(1);
  const left = await owner('SELECT version FROM skill_versions ORDER BY 1');
  expect(left).toEqual([{ version: 2 }, { version: 3 }]);
});

test('removes messages between agents and their records by their age', async () => {
  const texts = async (table: string, column: string) =>
    (await owner(`SELECT ${column} AS text FROM ${table} ORDER BY 1`)).map(({ text }) => text);
  for (const [id, days] of [
    ['1', 31],
    ['2', 29],
  ] as const) {
    const at = daysAgo(days);
    await insert('bus_messages', { id, message_id: id, created_at: at });
    await insert('bus_threads', { booking_id: id, updated_at: at });
    await insert('bus_amplifications', { post_id: id, updated_at: at });
  }
  await insert('bus_signatures', { id: 'old', created_at: daysAgo(2) });
  await insert('bus_signatures', { id: 'young' });
  for (const kind of [
    'bus-messages',
    'bus-threads',
    'bus-amplifications',
    'bus-signatures',
  ] as const) {
    expect(await remove(kind)).toBe(1);
  }
  expect(await texts('bus_messages', 'message_id')).toEqual(['2']);
  expect(await texts('bus_threads', 'booking_id')).toEqual(['2']);
  expect(await texts('bus_amplifications', 'post_id')).toEqual(['2']);
  expect(await texts('bus_signatures', 'id')).toEqual(['young']);
});

describe('a removed agent', () => {
  test('deletes an old removed agent with all its rows, in batches', async () => {
    await removedAgent('old', 91);
    await removedAgent('young', 89);
    for (const id of ['old', 'young']) {
      await insert('operations', {
        id: `of-${id}`,
        agent_id: id,
        status: 'succeeded',
        finished_at: daysAgo(1),
      });
      await insert('watchdog_transitions', { id: `of-${id}`, agent_id: id, at: daysAgo(1) });
    }
    await owner(
      `INSERT INTO messages (id, agent_id, user_id, conversation, role, content, created_at)
       SELECT 'of-old-' || n, 'old', 'ada', 'c', 'user', '', now()
         FROM generate_series(1, 1500) AS n`,
    );
    expect(await retention.removeSome('agents')).toBe(1_000);
    expect(await idsIn('agents')).toEqual(['ada-agent-1', 'old', 'young']);
    expect(await remove('agents')).toBe(503);
    expect(await idsIn('agents')).toEqual(['ada-agent-1', 'young']);
    for (const table of ['operations', 'watchdog_transitions']) {
      expect(await idsIn(table)).toEqual(['of-young']);
    }
    expect(await idsIn('messages')).toEqual([]);
  });

  test('keeps a removed agent while its removal or another operation is open', async () => {
    await agent('going', { desired: 'deleted' });
    await removedAgent('open', 91);
    await insert('operations', { id: 'open', agent_id: 'open', status: 'running' });
    expect(await remove('agents')).toBe(0);
    expect(await idsIn('agents')).toEqual(['ada-agent-1', 'going', 'open']);
  });

  test('keeps a removed agent while its host still has to remove a volume of it', async () => {
    await insert('hosts', { id: 'here' });
    for (const host of ['here', 'gone']) {
      const id = `from-${host}`;
      await agent(id, { desired: 'deleted', deleted_at: daysAgo(91), host });
      await insert('agent_volumes', { name: `agent-${id}`, agent_id: id });
    }
    expect(await remove('agents')).toBe(1);
    expect(await idsIn('agents')).toEqual(['ada-agent-1', 'from-here']);
    await owner('DELETE FROM agent_volumes');
    expect(await remove('agents')).toBe(1);
  });

  test('keeps the usage of a deleted agent in the daily sums', async () => {
    await removedAgent('old', 91);
    const at = daysAgo(95);
    await settleUsage(database.db, [usageOf({ agentId: 'old', at })], []);
    await remove('agents');
    const tenant = database.db.asUser('ada');
    expect((await agentNames(tenant, ['old']))('old')).toBe('Agent old');
    const day = at.slice(0, 10);
    expect(await usageDaily(tenant, { from: day, to: day })).toMatchObject([{ calls: 1 }]);
  });
});

test('removes single calls and keeps the sums of their days', async () => {
  const [old, young] = [daysAgo(91), daysAgo(89)];
  // Calls in order of arrival, which may differ from the order of their times.
  const calls = [young, ...Array.from({ length: 1_200 }, () => old), young, old];
  await settleUsage(
    database.db,
    calls.map((at) => usageOf({ at })),
    [],
  );
  await rollUpUsage(database.db);
  const sums = () =>
    usageDaily(database.db.asUser('ada'), { from: old.slice(0, 10), to: young.slice(0, 10) });
  const before = await sums();
  expect(await remove('usage')).toBe(1_201);
  expect(await idsIn('usage_logs')).toHaveLength(2);
  expect(await sums()).toEqual(before);
  expect(before.map(({ calls: count }) => count)).toEqual([1_201, 2]);
});

test('removes sums of tools that no report covers any more', async () => {
  const tools = [{ name: 'look', calls: 1, completed: 0, successes: 0, ms: 0 }];
  const ages = [0, 399, 402, 403, 404];
  const records = ages.map((age) => usageOf({ userId: 'bob', at: daysAgo(age), tools }));
  await settleUsage(database.db, records, []);
  expect(await remove('tool-usage')).toBe(3);
  const sums = await usageByTool(database.db.asUser('bob'), {
    from: '2000-01-01',
    to: '2100-01-01',
  });
  expect(sums).toMatchObject([{ tool: 'look', calls: 2 }]);
});

test.each([
  ['samples', 'agent_samples', 'at', 2],
  ['sample-sums', 'agent_sample_sums', 'at', 100],
  ['hourly-usage', 'usage_hourly', 'hour', 100],
] as const)('removes %s that no report of metrics covers', async (what, table, time, days) => {
  await owner(`DELETE FROM ${table}`);
  const [young, old] = [daysAgo(days - 0.01), daysAgo(days + 0.01)];
  for (const at of [young, old, daysAgo(days + 1)]) await insert(table, { [time]: at });
  expect(await remove(what)).toBe(2);
  expect(await owner(`SELECT ${time} AS at FROM ${table}`)).toEqual([{ at: new Date(young) }]);
});

test('removes sums by five minutes with their samples', async () => {
  await owner('DELETE FROM agent_sample_sums');
  for (const step of [300, 3_600]) {
    await insert('agent_sample_sums', { step, at: daysAgo(1.99) });
    await insert('agent_sample_sums', { step, at: daysAgo(2.01) });
  }
  expect(await remove('sample-sums')).toBe(1);
});

describe('the audit log', () => {
  const entry = (action: string, days: number) =>
    insert('audit_log', { id: days, action, at: daysAgo(days) });

  test('removes audit log entries older than the retention time, only by their age', async () => {
    await entry('young', 364);
    await entry('old', 366);
    expect(await remove('audit')).toBe(1);
    expect(await owner('SELECT action FROM audit_log')).toEqual([{ action: 'young' }]);
    await owner(`DELETE FROM audit_log`);
  });

  test('keeps audit log entries younger than 90 days against every way to delete them', async () => {
    await entry('young', 89);
    await entry('older', 91);
    const asked = database.db.call({ text: 'SELECT remove_old_audit($1, $2)' }, [0, 1_000]);
    expect(await asked).toEqual([{ remove_old_audit: 1 }]);
    const refusal = { code: '42501' };
    await expect(owner('DELETE FROM audit_log')).rejects.toMatchObject(refusal);
    await expect(
      database.db.asPlatform().query('DELETE FROM audit_log WHERE false'),
    ).rejects.toMatchObject({ parent: refusal });
    expect(await owner('SELECT action FROM audit_log')).toEqual([{ action: 'young' }]);
  });
});

test('removes proofs of Farcaster accounts after their token has expired', async () => {
  await insert('farcaster_tokens', { id: 'ended', expires_at: daysAgo(0.01) });
  await insert('farcaster_tokens', { id: 'good', expires_at: daysAgo(-0.01) });
  expect(await remove('farcaster')).toBe(1);
  expect(await idsIn('farcaster_tokens')).toEqual(['good']);
});

test('removes used nonces after they have expired by every clock', async () => {
  await insert('used_nonces', { id: 'ended', expires_at: daysAgo(1.01) });
  await insert('used_nonces', { id: 'just-ended', expires_at: daysAgo(0.9) });
  expect(await remove('nonces')).toBe(1);
  expect(await idsIn('used_nonces')).toEqual(['just-ended']);
});

test('removes expired mail links, and mails that no longer count towards a limit', async () => {
  for (const [kind, expires] of [
    ['verify-email', daysAgo(-1)],
    ['reset-password', daysAgo(0)],
  ] as const) {
    await insert('mail_tokens', { id: kind, kind, expires_at: expires });
  }
  expect(await remove('mail-tokens')).toBe(1);
  expect(await idsIn('mail_tokens')).toEqual(['verify-email']);
  await insert('mails', { id: 'old', requested_at: daysAgo(2.1) });
  await insert('mails', { id: 'young', requested_at: daysAgo(1.9) });
  expect(await remove('mails')).toBe(1);
  expect(await idsIn('mails')).toEqual(['young']);
});

test('keeps each kind for its configured time', async () => {
  const asked: unknown[] = [];
  const note = (days: unknown) => {
    asked.push(days);
    return Promise.resolve([{ done: 0 }]);
  };
  // The part of a database that retention uses; it records the requested days.
  const noting = {
    asPlatform: () => ({ query: (_: string, { days }: { days: number }) => note(days) }),
    call: (_: unknown, [days]: readonly unknown[]) => note(days),
  } as unknown as Database;
  const set = {
    ...{ agents: 8, operations: 9, transitions: 10, messages: 11, usage: 36, audit: 91 },
    ...{ events: 12, payments: 92, bus: 37 },
  };
  const kept = new Retention(noting, set);
  const kinds = [
    ...(['agents', 'operations', 'transitions', 'messages', 'usage', 'audit'] as const),
    ...(['events', 'payments', 'payment-sessions', 'x402-payments'] as const),
    ...(['bus-messages', 'bus-threads', 'bus-amplifications'] as const),
  ];
  for (const kind of kinds) await kept.removeSome(kind);
  expect(asked).toEqual([8, 9, 10, 11, 36, 91, 12, 92, 92, 92, 37, 37, 37]);
});

test('rejects a retention time below the minimum of its kind', () => {
  const set = (name: string, value: string) => () =>
    loadSettings(testEnvironment({ DATABASE_URL: database.url }, { [name]: value }));
  for (const [name, least] of [
    ['RETENTION_AGENTS', 7],
    ['RETENTION_OPERATIONS', 7],
    ['RETENTION_TRANSITIONS', 7],
    ['RETENTION_MESSAGES', 7],
    ['RETENTION_EVENTS', 7],
    ['RETENTION_BUS', 7],
    ['RETENTION_USAGE', 35],
    ['RETENTION_AUDIT', 90],
    ['RETENTION_PAYMENTS', 90],
  ] as const) {
    expect(set(name, `${least}d`)().retention).toBeDefined();
    for (const wrong of [`${least - 1}d`, '3651d', '90', '0d', '90h', '1e2d']) {
      expect(set(name, wrong)).toThrow(`${name} must be a number of days, from ${least}d`);
    }
  }
  // These kinds carry their own expiry, or have a fixed one.
  const ending: readonly RetainedKind[] = [
    ...(['sessions', 'nonces', 'invites', 'farcaster', 'mail-tokens', 'mails'] as const),
    ...(['holds', 'gas', 'answers', 'sums-of-answers', 'accounts', 'bus-signatures'] as const),
    ...(['tool-usage', 'hourly-usage', 'samples', 'sample-sums', 'provider-webhooks'] as const),
  ];
  // Results of security events are kept as long as the audit log.
  const audited: readonly RetainedKind[] = ['audit', 'security-events', 'reset-mail-stops'];
  const paid: readonly RetainedKind[] = [
    ...([
      'payments',
      'payment-sessions',
      'x402-payments',
      'checkouts',
      'plan-checkouts',
      'processor-events',
    ] as const),
  ];
  const ofBus: readonly RetainedKind[] = ['bus-messages', 'bus-threads', 'bus-amplifications'];
  const ofOperations: readonly RetainedKind[] = [
    'verifications',
    'data-feeds',
    'swarms',
    'task-runs',
    'emails',
    'videos',
    'skill-versions',
  ];
  const others = [...ending, ...audited, ...paid, ...ofBus, ...ofOperations];
  expect(RETAINED.filter((each) => !others.includes(each))).toHaveLength(6);
});

test('removes ended checkouts of plans after the retention of payments, and no open ones', async () => {
  await insert('subscription_checkouts', {
    id: 'old',
    created_at: daysAgo(3_000),
    ended_at: daysAgo(1),
  });
  await insert('subscription_checkouts', { id: 'open', created_at: daysAgo(3_000) });
  await insert('subscription_checkouts', {
    id: 'young',
    created_at: daysAgo(1),
    ended_at: daysAgo(1),
  });
  expect(await remove('plan-checkouts')).toBe(1);
  expect(await idsIn('subscription_checkouts')).toEqual(['open', 'young']);
});

test('removes events of providers after seven days, when no repetition is expected any more', async () => {
  for (const days of [6, 8]) {
    const id = `msg_${days}`;
    await insert('provider_webhooks', { kind: 'video', id, received_at: daysAgo(days) });
  }
  expect(await remove('provider-webhooks')).toBe(1);
  expect(await idsIn('provider_webhooks')).toEqual(['msg_6']);
});

test('removes reserved gas of days that are over', async () => {
  await insert('gas_reservations', { id: 'old', reserved_at: daysAgo(2.1) });
  await insert('gas_reservations', { id: 'young', reserved_at: daysAgo(1.9) });
  expect(await remove('gas')).toBe(1);
  expect(await idsIn('gas_reservations')).toEqual(['young']);
});

test("removes agents' events after their retention, counted from their date", async () => {
  await insert('underground_events', { id: 1, event_date: daysAgo(366) });
  await insert('underground_events', { id: 2, event_date: daysAgo(364) });
  expect(await remove('events')).toBe(1);
  expect(await idsIn('underground_events')).toEqual(['2']);
});

test('removes payments by the x402 gateway after the retention of payments', async () => {
  const payment = { amount: 1, currency: 'USDC', state: 'paid' };
  await insert('x402_payments', { ...payment, id: 'old', sent_at: daysAgo(366) });
  await insert('x402_payments', { ...payment, id: 'young', sent_at: daysAgo(364) });
  expect(await remove('x402-payments')).toBe(1);
  expect(await idsIn('x402_payments')).toEqual(['young']);
});

describe("the identity provider's security events", () => {
  test('removes security events applied before the retention time of the audit log', async () => {
    const event = (id: string, row: Record<string, string>) =>
      insert('risc_events', { jti: id, id, ...row });
    await event('old', { applied_at: daysAgo(367) });
    await event('young', { applied_at: daysAgo(365) });
    await event('waiting', { received_at: daysAgo(367) });
    await event('of the future', { applied_at: daysAgo(367), issued_at: daysAgo(-1) });
    await event('known', { applied_at: daysAgo(367), issued_at: daysAgo(367) });
    expect(await remove('security-events')).toBe(2);
    expect(await idsIn('risc_events')).toEqual(['of the future', 'waiting', 'young']);
  });

  test('keeps a stop of reset mails until it was lifted before the retention time of the audit log', async () => {
    await insert('reset_mail_stops', { id: 'holds', stopped: 'true', reported_at: daysAgo(4_000) });
    await insert('reset_mail_stops', { id: 'old', stopped: 'false', reported_at: daysAgo(366) });
    await insert('reset_mail_stops', { id: 'young', stopped: 'false', reported_at: daysAgo(364) });
    expect(await remove('reset-mail-stops')).toBe(1);
    expect(await idsIn('reset_mail_stops')).toEqual(['holds', 'young']);
  });
});

test('removes kept answers whose keys are free again', async () => {
  await insert('idempotency_keys', { key: 'old', created_at: daysAgo(1.01) });
  await insert('idempotency_keys', { key: 'young', created_at: daysAgo(0.99) });
  expect(await remove('answers')).toBe(1);
  expect(await owner('SELECT key FROM idempotency_keys')).toEqual([{ key: 'young' }]);
  await insert('kept_answers', { owner: 'empty', bytes: 0 });
  await insert('kept_answers', { owner: 'full', bytes: 1 });
  expect(await remove('sums-of-answers')).toBe(1);
  expect(await owner('SELECT owner FROM kept_answers')).toEqual([{ owner: 'full' }]);
});

describe('payments', () => {
  const signer = `0x${'a'.repeat(40)}`;
  /** Adds a payment with one final transaction. */
  async function paid(nonce: number, days: number, row: Record<string, string> = {}) {
    const id = `p${nonce}`;
    await insert('payments', {
      id,
      cause: `cause-${nonce}`,
      signer,
      state: 'confirmed',
      hash: id,
      block_number: 1,
      nonce,
      requested_at: daysAgo(days),
      settled_at: daysAgo(days),
      ...row,
    });
    await insert('transactions', {
      hash: id,
      payment_id: id,
      purpose: 'pay',
      signer,
      nonce,
      final_at: daysAgo(days),
    });
  }
  const left = () => idsIn('payments');
  const hashes = async () =>
    (await owner('SELECT hash FROM transactions ORDER BY hash')).map(({ hash }) => hash);

  beforeEach(() =>
    owner('TRUNCATE payments, transactions, payment_sessions, royalty_splits CASCADE'),
  );

  test(
    'removes old payments with their transactions, and keeps the last nonce of a signer',
    attack,
    async () => {
      await paid(1, 366);
      await insert('transactions', {
        hash: 'replaced',
        payment_id: 'p1',
        purpose: 'cancel',
        signer,
        nonce: 1,
        active: 'false',
      });
      await paid(2, 364);
      await paid(3, 366);
      await insert('transactions', { hash: 'fill', signer, nonce: 0, final_at: daysAgo(366) });
      expect(await remove('payments')).toBe(2);
      expect(await left()).toEqual(['p2', 'p3']);
      expect(await hashes()).toEqual(['p2', 'p3']);
    },
  );

  test('keeps payments that are open, unknown, or of an open session or split', async () => {
    await insert('payments', { id: 'open', requested_at: daysAgo(400), signer });
    await paid(1, 400, { state: 'failed', failure: 'unknown' });
    await insert('payment_sessions', { id: 'here', state: 'opening' });
    await paid(2, 400, { cause: 'session-open:here' });
    await paid(3, 400, { cause: 'settlement:gone:7:settle' });
    await insert('royalty_splits', { id: 7, status: 'processing' });
    await paid(4, 400, { cause: 'split:7:1:0' });
    await paid(5, 400, { cause: 'split:8:1:0' });
    await paid(6, 1);
    expect(await remove('payments')).toBe(2);
    expect(await left()).toEqual(['open', 'p1', 'p2', 'p4', 'p6']);
  });

  test('the ledger balances after its old payments were removed', async () => {
    await insert('ledger_accounts', { name: 'fees', currency: 'pathusd', balance: -3 });
    await insert('ledger_accounts', { name: 'external', currency: 'pathusd', balance: 3 });
    await paid(1, 366);
    await paid(2, 1);
    await owner(
      `UPDATE transactions SET fee = 3, fee_payer = 'x', fee_block = 'x' WHERE hash = 'p1'`,
    );
    await insert('ledger_transfers', {
      cause: 'fee:p1',
      debit: 'fees',
      credit: 'external',
      currency: 'pathusd',
      amount: 3,
      created_at: daysAgo(366),
    });
    const check = async () => (await checkLedger(database.db, LEDGER_CHECKS)).differences;
    expect(await check()).toEqual([]);
    expect(await remove('payments')).toBe(1);
    expect(await check()).toEqual([]);
    await owner(`UPDATE ledger_transfers SET created_at = now() - interval '59 days'`);
    expect(await check()).toEqual(['fee:p1 is in the ledger, and no transaction has it']);
    await owner('TRUNCATE ledger_transfers, ledger_accounts CASCADE');
  });
});

describe('payment sessions', () => {
  const session = (id: string, row: Record<string, string>) => {
    const hex = Buffer.from(id.padEnd(20, '-')).toString('hex');
    return insert('payment_sessions', {
      id,
      token_hash: id,
      address: `0x${hex}`,
      nonce: `0x${hex.padEnd(64, '0')}`,
      ...row,
    });
  };
  const closed = (id: string, days: number) =>
    session(id, {
      state: 'closed',
      opened_at: daysAgo(days + 1),
      hold_expires_at: daysAgo(days),
      closing_at: daysAgo(days),
      closed_at: daysAgo(days),
    });
  const vouchers = (of: string, count: number) =>
    owner(
      `INSERT INTO payment_vouchers (id, session_id, sequence, amount, cumulative, plugin, action)
       SELECT '${of}-' || n, '${of}', n, 1, n, 'echo', 'say' FROM generate_series(1, ${count}) AS n`,
    );

  beforeEach(() => owner('TRUNCATE payment_sessions CASCADE'));

  test('removes old ended sessions with their vouchers, in batches', attack, async () => {
    await closed('old', 366);
    await closed('young', 364);
    await vouchers('old', 1_500);
    await vouchers('young', 1);
    await insert('payment_settlements', { session_id: 'old', payment: 'settled' });
    expect(await retention.removeSome('payment-sessions')).toBe(1_000);
    expect(await idsIn('payment_sessions')).toEqual(['old', 'young']);
    expect(await remove('payment-sessions')).toBe(501);
    expect(await idsIn('payment_sessions')).toEqual(['young']);
    expect(await idsIn('payment_vouchers')).toEqual(['young-1']);
    expect(await owner('SELECT FROM payment_settlements')).toEqual([]);
  });

  test('removes old openings that failed', attack, async () => {
    const failed = { state: 'failed', failure: 'reverted' };
    await session('old', { ...failed, created_at: daysAgo(366) });
    await session('young', { ...failed, created_at: daysAgo(364) });
    await session('opening', { created_at: daysAgo(366) });
    expect(await remove('payment-sessions')).toBe(1);
    expect(await idsIn('payment_sessions')).toEqual(['opening', 'young']);
  });

  test('keeps a session that still has money on its accounts', async () => {
    await closed('old', 366);
    await insert('ledger_accounts', { name: 'session:old:spent', currency: 'pathusd', balance: 1 });
    expect(await remove('payment-sessions')).toBe(0);
    await owner('TRUNCATE ledger_accounts CASCADE');
    expect(await remove('payment-sessions')).toBe(1);
  });
});

describe('accounts', () => {
  const user = (id: string, row: Record<string, string> = {}) =>
    owner(insertSql('users', { ...ROWS['users']?.(id, 1), created_at: daysAgo(91), ...row }));
  const of = (id: string, table: string, row: Record<string, string | number> = {}) =>
    owner(insertSql(table, { ...ROWS[table]?.(id, 1), ...row }));
  const wallet = (id: string, kind: 'imported' | 'user') =>
    owner(
      `INSERT INTO wallets (id, user_id, kind, address, sealed_key, brought, created_at)
       VALUES ('${id}', '${id}', '${kind}', '0x' || repeat('a', 40), 'x', ${kind === 'imported'}, now())`,
    );
  const closing = async () =>
    (await owner('SELECT user_id FROM account_deletions ORDER BY user_id')).map(
      ({ user_id }) => user_id,
    );

  test(
    'deletes accounts without sign-in, plan, agent, key and bought credit for 90 days',
    attack,
    async () => {
      await user('unused');
      await user('granted');
      await of('granted', 'ledger_accounts', { name: 'user:granted:granted', balance: 1 });
      await user('spent');
      await of('spent', 'ledger_accounts', { name: 'user:spent:credits', balance: 0 });
      await user('lapsed');
      await of('lapsed', 'subscriptions', {
        period_start: daysAgo(200),
        period_end: daysAgo(91),
        updated_at: daysAgo(200),
      });
      await user('brought');
      await wallet('brought', 'imported');

      await user('new', { created_at: daysAgo(89) });
      await user('admin', { is_admin: 'true' });
      await user('signed-in');
      await of('signed-in', 'sessions');
      await user('signed-out');
      await of('signed-out', 'audit_log', {
        actor: 'signed-out',
        action: 'session.delete',
        at: daysAgo(89),
      });
      await user('keyed');
      await of('keyed', 'api_keys');
      await user('with-agent');
      await of('with-agent', 'agents', { deleted_at: daysAgo(1), desired: 'deleted' });
      await user('subscribed');
      await of('subscribed', 'subscriptions', {
        period_end: daysAgo(89),
        updated_at: daysAgo(200),
      });
      await user('with-credit');
      await of('with-credit', 'ledger_accounts', { name: 'user:with-credit:credits', balance: 1 });
      await user('with-wallet');
      await wallet('with-wallet', 'user');

      expect(await remove('accounts')).toBe(5);
      expect(await closing()).toEqual(['brought', 'granted', 'lapsed', 'spent', 'unused']);
      expect(await owner(`SELECT actor, detail FROM audit_log WHERE subject = 'unused'`)).toEqual([
        { actor: 'platform', detail: { reason: 'unused' } },
      ]);
      expect(await remove('accounts')).toBe(0);
    },
  );
});
