import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordAudit } from '../../../src/platform/audit/audit.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { queryRows } from './catalog.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(async () => {
  await database.close();
});

const stored = (action: string) =>
  queryRows(database.ownerUrl, `SELECT * FROM audit_log WHERE action = '${action}'`);

describe('the audit log', () => {
  test('stores a record unchanged', async () => {
    const before = Date.now() - 1_000;
    await recordAudit(database.db.asUser('alice'), {
      actor: 'alice',
      userId: 'alice',
      action: 'agent.delete',
      subject: 'agent-1',
      detail: { name: 'it\'s {"odd"}' },
      requestId: 'request-1',
    });
    const [record] = await stored('agent.delete');
    expect(record).toMatchObject({
      actor: 'alice',
      user_id: 'alice',
      subject: 'agent-1',
      detail: { name: 'it\'s {"odd"}' },
      request_id: 'request-1',
    });
    expect(record?.at).toBeInstanceOf(Date);
    expect(Number(record?.at)).toBeGreaterThan(before);
  });

  test("stores the platform's own records, which belong to no user", async () => {
    await recordAudit(database.db.asPlatform(), { actor: 'worker', action: 'own', subject: 'x' });
    expect(await stored('own')).toMatchObject([{ user_id: null, detail: {}, request_id: null }]);
  });

  test('drops a record when its transaction is rolled back', async () => {
    const work = database.db.asUser('alice').transaction(async (db) => {
      const record = { actor: 'alice', userId: 'alice', action: 'undone', subject: 'x' };
      await recordAudit(db, record);
      throw new RangeError('on purpose');
    });
    await expect(work).rejects.toThrow(RangeError);
    expect(await stored('undone')).toEqual([]);
  });

  test("refuses a user's record about another user", { tags: 'attack' }, async () => {
    const alice = database.db.asUser('alice');
    const record = { actor: 'alice', action: 'forged', subject: 'x' };
    await expect(recordAudit(alice, { ...record, userId: 'bob' })).rejects.toThrow();
    await expect(recordAudit(alice, record)).rejects.toThrow();
    expect(await stored('forged')).toEqual([]);
  });

  test.each(['UPDATE audit_log SET actor = $$x$$', 'DELETE FROM audit_log', 'TRUNCATE audit_log'])(
    'the audit log cannot be changed by any role: %s',
    async (sql) => {
      const refusal = { code: '42501' };
      const served = database.db.asPlatform().query(sql);
      await expect(served).rejects.toMatchObject({ parent: refusal });
      await expect(queryRows(database.ownerUrl, sql)).rejects.toMatchObject(refusal);
    },
  );
});
