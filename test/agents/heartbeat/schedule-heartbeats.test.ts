import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { UnavailableError } from '../../../src/lib/errors.js';
import { OwnerTurns } from '../../../src/agents/chat/owner-turns.js';
import { HeartbeatSender } from '../../../src/agents/heartbeat/heartbeat-sender.js';
import type {
  HeartbeatScheduler,
  HeartbeatSetting,
} from '../../../src/agents/heartbeat/heartbeats.js';
import {
  UserHeartbeats,
  type HeartbeatChange,
} from '../../../src/agents/heartbeat/user-heartbeats.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { noticeLost, scheduleHeartbeats } from '../../../worker/schedule-heartbeats.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const secrets = new SecretBox(ringOf(Buffer.alloc(32)));

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  for (const user of ['ada', 'bob']) {
    await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.(user, 1) ?? {}));
  }
});
afterEach(() => queryRows(database.ownerUrl, 'DELETE FROM heartbeats'));
afterAll(() => database?.close());

const set = (change: HeartbeatChange, actor = 'ada') =>
  new UserHeartbeats(database.db).set(
    { tenant: database.db.asUser(actor), actor, requestId: 'r', idempotencyId: 'i' },
    change,
  );
const stored = async (userId = 'ada') =>
  database.db.asUser(userId).transaction((db) => db.Heartbeat.getByPk(userId));

/** A fake Temporal that keeps the last setting of each schedule. */
class Schedules implements HeartbeatScheduler {
  readonly last = new Map<string, HeartbeatSetting>();
  /** Delays a call before its effect. */
  before: (heartbeat: HeartbeatSetting) => Promise<void> = () => Promise.resolve();

  async apply(heartbeat: HeartbeatSetting): Promise<void> {
    await this.before(heartbeat);
    this.last.set(heartbeat.userId, heartbeat);
  }

  /** Runs one scheduling pass of a worker. */
  follow = () =>
    scheduleHeartbeats({
      database: database.db,
      schedules: this,
      log: pino({ level: 'silent' }),
    });
}

test('holds no database lock during a request to Temporal', async () => {
  await set({ frequency: '5m', enabled: true });
  const schedules = new Schedules();
  let second: Promise<unknown> | undefined;
  schedules.before = () => (second ??= set({ frequency: '6m' })).then(() => undefined);
  await schedules.follow();
  expect(await stored()).toMatchObject({ frequency: '6m', scheduled: false });
  await schedules.follow();
  expect(schedules.last.get('ada')).toMatchObject({ frequency: '6m', enabled: true });
  expect(await stored()).toMatchObject({ frequency: '6m', scheduled: true });
});

test('corrects a schedule that a slow worker overwrote with an older setting', async () => {
  await set({ frequency: '5m', enabled: true });
  const schedules = new Schedules();
  const fast = new Schedules();
  schedules.before = async () => {
    schedules.before = () => Promise.resolve();
    await set({ frequency: '6m' });
    await fast.follow();
    expect(fast.last.get('ada')).toMatchObject({ frequency: '6m' });
    expect(await stored()).toMatchObject({ scheduled: true });
  };
  await schedules.follow();
  expect(schedules.last.get('ada')).toMatchObject({ frequency: '5m' });
  await schedules.follow();
  expect(schedules.last.get('ada')).toMatchObject({ frequency: '6m' });
  expect(await stored()).toMatchObject({ scheduled: true });
});

test('skips a heartbeat that cannot be scheduled, and ends the pass while Temporal is unavailable', async () => {
  await set({ enabled: true }, 'ada');
  await set({ enabled: true }, 'bob');
  const schedules = new Schedules();
  schedules.before = ({ userId }) =>
    userId === 'ada' ? Promise.reject(new TypeError('odd')) : Promise.resolve();
  await schedules.follow();
  expect([...schedules.last.keys()]).toEqual(['bob']);
  schedules.before = () => Promise.reject(new UnavailableError('away'));
  await expect(schedules.follow()).rejects.toThrow(UnavailableError);
  schedules.before = () => Promise.resolve();
  await schedules.follow();
  expect(schedules.last.get('ada')).toMatchObject({ enabled: true });
});

test('sends no heartbeat from an outdated schedule, and schedules its setting again', async () => {
  const sender = new HeartbeatSender(database.db, new OwnerTurns(database.db, secrets));
  const { updatedAt: first } = await set({ frequency: '5m', enabled: true });
  const schedules = new Schedules();
  await schedules.follow();
  expect(await sender.begin('ada', first!.toISOString())).toBe(true);
  const { lastHeartbeatAt } = await stored();
  expect(lastHeartbeatAt).not.toBeNull();

  await set({ frequency: '1d' });
  await schedules.follow();
  expect(await sender.begin('ada', first!.toISOString())).toBe(false);
  expect(await stored()).toMatchObject({ scheduled: false, lastHeartbeatAt });

  const { updatedAt: off } = await set({ enabled: false });
  await schedules.follow();
  expect(await sender.begin('ada', off!.toISOString())).toBe(false);
  expect(await stored()).toMatchObject({ scheduled: false, lastHeartbeatAt });
});

test('gives each setting its own timestamp, even when the clock does not advance', async () => {
  const { updatedAt: first } = await set({ frequency: '5m' });
  await queryRows(
    database.ownerUrl,
    `UPDATE heartbeats SET updated_at = updated_at + interval '1 hour'`,
  );
  const { updatedAt: second } = await set({ frequency: '6m' });
  expect(second!.getTime()).toBe(first!.getTime() + 3_600_001);
});

test('records who set a heartbeat in the audit log', async () => {
  await set({ frequency: '5m', enabled: true });
  const rows = await queryRows(
    database.ownerUrl,
    `SELECT actor, user_id, detail FROM audit_log WHERE action = 'heartbeat.set'
      ORDER BY id DESC LIMIT 1`,
  );
  const detail = { enabled: true, frequency: '5m' };
  expect(rows).toEqual([{ actor: 'ada', user_id: 'ada', detail }]);
});

test('schedules only those heartbeats again that are overdue by twice their interval', async () => {
  const users = {
    late: ['7m', 15],
    due: ['7m', 13],
    off: ['7m', 15],
    rare: ['1d', 60 * 47],
  } as const;
  for (const [user, [frequency, minutes]] of Object.entries(users)) {
    await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.(user, 1) ?? {}));
    await set({ frequency, enabled: user !== 'off' }, user);
    await queryRows(
      database.ownerUrl,
      `UPDATE heartbeats SET scheduled = true, updated_at = now() - interval '10 days',
              last_heartbeat_at = now() - interval '${minutes} minutes' WHERE user_id = '${user}'`,
    );
  }
  await set({ frequency: '5m', enabled: true }, 'bob');
  const schedules = new Schedules();
  await schedules.follow();
  await noticeLost(database.db);
  const sought = new Schedules();
  await sought.follow();
  expect([...sought.last.keys()]).toEqual(['late']);
});
