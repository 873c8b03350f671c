import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
