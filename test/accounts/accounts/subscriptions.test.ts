import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parsePlan, PLAN_LIMITS, webAgentLimit } from '../../../src/types/plans.js';
import { findEntitlement } from '../../../src/accounts/accounts/entitlement.js';
import { grantPlan } from '../../../src/accounts/accounts/subscriptions.js';
import { NotFoundError } from '../../../src/lib/errors.js';
import { recordHeartbeat } from '../../../src/accounts/installations/heartbeat.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const BY = { actor: 'operator', requestId: 'a-request' };

let database: TestDatabase;

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

const planOf = async (userId: string) =>
  (await findEntitlement(database.db.asUser(userId), userId, { adminEmails: [] }))?.plan;

beforeAll(async () => {
  database = await testDatabase();
  for (const user of ['alice', 'bob']) await owner(insertSql('users', ROWS.users?.(user, 1) ?? {}));
  await owner(insertSql('installations', ROWS.installations?.('alice', 1) ?? {}));
});

afterAll(async () => {
  await database.close();
});

describe('plans', () => {
  test('plans allow the number of agents fixed in the contract', () => {
    const agents = Object.values(PLAN_LIMITS).map((limits) => limits.agents);
    expect(agents).toEqual([1, 3, 10, 100]);
  });

  test.each([
    ['solo', 'solo'],
    ['starter', 'solo'],
    ['pro', 'collective'],
    ['enterprise', 'network'],
    ['free', undefined],
    ['toString', undefined],
    ['', undefined],
    [null, undefined],
  ])('reads the plan %j as %j', (name, plan) => {
    expect(parsePlan(name)).toBe(plan);
  });

  test("the web API enforces a plan's number of agents", () => {
    const limits = (['label', 'solo', 'collective', 'network', undefined] as const).map(
      webAgentLimit,
    );
    expect(limits).toEqual([1, 1, 3, 100, 1]);
  });
});

describe('a subscription', () => {
  test('the plan is the last one granted', async () => {
    expect(await planOf('alice')).toBeUndefined();
    await grantPlan(database.db, 'alice', 'solo', BY);
    expect(await planOf('alice')).toBe('solo');
    await grantPlan(database.db, 'alice', 'network', BY);
    expect(await planOf('alice')).toBe('network');
    expect(await planOf('bob')).toBeUndefined();
  });

  test('grants a subscription and writes its audit entry in one transaction', async () => {
    const recorded = () => owner(`SELECT id FROM audit_log WHERE user_id = 'alice'`);
    const before = await recorded();
    await owner(
      `ALTER TABLE audit_log ADD CONSTRAINT no_grants CHECK (action <> 'subscription.grant') NOT VALID`,
    );
    await expect(grantPlan(database.db, 'alice', 'solo', BY)).rejects.toThrow();
    await owner('ALTER TABLE audit_log DROP CONSTRAINT no_grants');
    expect(await planOf('alice')).toBe('network');
    await grantPlan(database.db, 'alice', 'solo', BY);
    expect(await recorded()).toHaveLength(before.length + 1);
  });

  test('a subscription that is cancelled or past its period grants no plan', async () => {
    for (const end of [
      `status = 'cancelled'`,
      `period_start = now() - interval '2 days',
                        period_end = now() - interval '1 day'`,
    ]) {
      await grantPlan(database.db, 'bob', 'solo', BY);
      expect(await planOf('bob')).toBe('solo');
      await owner(`UPDATE subscriptions SET ${end} WHERE user_id = 'bob'`);
      expect(await planOf('bob')).toBeUndefined();
    }
  });

  test('refuses to grant a subscription to an unknown user', async () => {
    await expect(grantPlan(database.db, 'nobody', 'solo', BY)).rejects.toThrow(NotFoundError);
  });
});

describe('several subscriptions of a user', () => {
  /** Adds a subscription of the processor. */
  const buy = (plan: string, row: Record<string, string> = {}) =>
    owner(
      insertSql('subscriptions', {
        ...ROWS.subscriptions?.('carol', 1),
        source: 'processor',
        processor_id: `sub_${plan}`,
        plan,
        ...row,
      }),
    );
  const change = (plan: string, sql: string) =>
    owner(`UPDATE subscriptions SET ${sql} WHERE user_id = 'carol' AND plan = '${plan}'`);

  /** Returns the plan that each lookup finds, which has to be the same everywhere. */
  async function plansOfCarol() {
    const [session] = await owner(`SELECT plan FROM find_signed_in('carol-token')`);
    const byKey = await owner(`SELECT plan, subscription_active FROM find_keys('{carol-key}')`);
    const byAgent = await owner(
      `SELECT plan, subscription_active FROM find_calling_agents('{carol-agent}')`,
    );
    expect(byAgent).toEqual(byKey);
    const plan = await planOf('carol');
    expect(session?.plan).toBe(plan ?? null);
    expect(byKey).toHaveLength(1);
    return { plan, found: byKey[0]?.plan, active: byKey[0]?.subscription_active };
  }

  beforeAll(async () => {
    await owner(insertSql('users', ROWS.users?.('carol', 1) ?? {}));
    await owner(
      insertSql('sessions', { ...ROWS.sessions?.('carol', 1), token_hash: 'carol-token' }),
    );
    await owner(
      insertSql('api_keys', { ...ROWS.api_keys?.('carol', 1), lookup_hash: 'carol-key' }),
    );
    await owner(insertSql('agents', ROWS.agents?.('carol', 1) ?? {}));
    const secret = { ...ROWS.agent_secrets?.('carol', 2), lookup_hash: 'carol-agent' };
    await owner(insertSql('agent_secrets', secret));
  });
  beforeEach(() => owner(`DELETE FROM subscriptions WHERE user_id = 'carol'`));

  test('without a row there is no plan', async () => {
    expect(await plansOfCarol()).toEqual({ plan: undefined, found: null, active: null });
  });

  test('the highest plan that holds counts at every lookup', async () => {
    await grantPlan(database.db, 'carol', 'solo', BY);
    await buy('collective');
    await buy('label');
    expect(await plansOfCarol()).toMatchObject({ plan: 'collective', active: true });
    await grantPlan(database.db, 'carol', 'network', BY);
    expect(await plansOfCarol()).toMatchObject({ plan: 'network', active: true });
    await grantPlan(database.db, 'carol', 'label', BY);
    await change('collective', `status = 'cancelled'`);
    expect(await plansOfCarol()).toMatchObject({ plan: 'label', active: true });
  });

  test('an unpaid plan holds until its grace ends', async () => {
    const past = `status = 'past_due', period_end = now() - interval '1 day'`;
    await buy('solo', { period_start: '2025-01-01' });
    await change('solo', `${past}, holds_until = now() + interval '1 day'`);
    expect(await plansOfCarol()).toMatchObject({ plan: 'solo', active: true });
    await change('solo', `holds_until = now() - interval '1 s'`);
    expect(await plansOfCarol()).toEqual({ plan: undefined, found: 'solo', active: false });
  });

  test('the last plan that ended is found if none holds', async () => {
    await buy('network', { period_start: '2025-01-01', period_end: '2025-02-01' });
    await buy('label', { period_start: '2025-01-01', period_end: '2025-03-01' });
    expect(await plansOfCarol()).toEqual({ plan: undefined, found: 'label', active: false });
  });

  test('a storage plan does not count as a plan', async () => {
    await buy('200gb', { kind: 'storage' });
    expect(await plansOfCarol()).toEqual({ plan: undefined, found: null, active: null });
  });

  test('a grant leaves the subscriptions of the processor unchanged', async () => {
    await buy('solo');
    const rows = () => owner(`SELECT * FROM subscriptions WHERE processor_id = 'sub_solo'`);
    const before = await rows();
    await grantPlan(database.db, 'carol', 'network', BY);
    await grantPlan(database.db, 'carol', 'label', BY);
    expect(await rows()).toEqual(before);
    expect(await owner(`SELECT plan FROM subscriptions WHERE user_id = 'carol'`)).toHaveLength(2);
  });

  test('refuses a second grant, a second row of one subscription, and a granted storage plan', async () => {
    await grantPlan(database.db, 'carol', 'solo', BY);
    await buy('solo');
    const grant = (row: Record<string, string>) =>
      owner(insertSql('subscriptions', { ...ROWS.subscriptions?.('carol', 1), ...row }));
    await expect(grant({ kind: 'plan', plan: 'label' })).rejects.toThrow('subscriptions_grant');
    await expect(buy('solo')).rejects.toThrow('subscriptions_processor_id');
    await owner(`DELETE FROM subscriptions WHERE source = 'operator'`);
    await expect(grant({ kind: 'storage', plan: '10gb' })).rejects.toThrow('source_check');
    await expect(buy('10gb')).rejects.toThrow('plan_check');
  });
});

describe("an installation's heartbeat", () => {
  test('a heartbeat marks a known installation as active now', async () => {
    await recordHeartbeat(database.db, 'alice');
    const [installation] = await owner('SELECT * FROM installations');
    expect(installation).toMatchObject({ user_id: 'alice', status: 'active' });
    expect(Date.now() - Number(installation?.last_seen)).toBeLessThan(60_000);
  });

  test('a heartbeat of an unknown installation stores nothing', async () => {
    for (const userId of ['bob', 'nobody', '']) await recordHeartbeat(database.db, userId);
    expect(await owner('SELECT user_id FROM installations')).toEqual([{ user_id: 'alice' }]);
  });
});
