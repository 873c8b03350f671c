import { findUser } from '../accounts/users.js';
import { recordAudit } from '../audit/audit.js';
import type { Requester } from '../audit/requester.js';
import type { Database, TenantDatabase } from '../database/database.js';
import { NotFoundError } from '../errors.js';
import {
  DEFAULT_HEARTBEAT,
  readHeartbeat,
  scheduleHeartbeat,
  type Heartbeat,
  type HeartbeatScheduler,
  type SetHeartbeat,
} from './heartbeats.js';

export interface HeartbeatChange {
  readonly frequency?: string | undefined;
  readonly enabled?: boolean | undefined;
}

/** The heartbeats that users set for their agents. */
export class UserHeartbeats {
  readonly #database: Database;
  readonly #scheduler: HeartbeatScheduler;

  constructor(database: Database, scheduler: HeartbeatScheduler) {
    this.#database = database;
    this.#scheduler = scheduler;
  }

  /**
   * Changes the setting of whoever asks, and lets the schedule follow; what is left out stays. The
   * row is what counts: one whose schedule did not follow is marked, and is made to follow by
   * `recoverHeartbeats`.
   *
   * @throws NotFoundError when there is no such user
   * @throws UnavailableError when Temporal cannot be reached: then the setting is as before
   */
  async set({ actor, requestId }: Requester, change: HeartbeatChange): Promise<Heartbeat> {
    if (!(await findUser(this.#database, actor))) throw new NotFoundError('User not found');
    const tenant = this.#database.asUser(actor);
    const { before, after } = await writeSetting(tenant, actor, change);
    try {
      await scheduleHeartbeat(tenant, this.#scheduler, actor);
    } catch (error) {
      await revertSetting(tenant, before, after);
      throw error;
    }
    const heartbeat = await readHeartbeat(tenant, actor);
    const { enabled, frequency } = heartbeat;
    await recordAudit(tenant, {
      actor,
      userId: actor,
      action: 'heartbeat.set',
      subject: actor,
      detail: { enabled, frequency },
      requestId,
    });
    return heartbeat;
  }
}

async function writeSetting(tenant: TenantDatabase, userId: string, change: HeartbeatChange) {
  return tenant.transaction(async (db) => {
    const made = { userId, ...DEFAULT_HEARTBEAT, scheduled: true, updatedAt: new Date() };
    await db.Heartbeat.bulkCreate([made], { ignoreDuplicates: true });
    const before = await db.Heartbeat.getByPk(userId, { lock: true });
    const changed = {
      frequency: change.frequency ?? before.frequency,
      enabled: change.enabled ?? before.enabled,
      scheduled: false,
      updatedAt: new Date(),
    };
    await db.Heartbeat.update(changed, { where: { userId } });
    return { before, after: { ...before, ...changed } };
  });
}

/** Unless it was changed again meanwhile. Whether the schedule has heard stays open. */
async function revertSetting(
  tenant: TenantDatabase,
  before: SetHeartbeat,
  after: SetHeartbeat,
): Promise<void> {
  const { frequency, enabled, updatedAt } = before;
  await tenant.transaction((db) =>
    db.Heartbeat.update(
      { frequency, enabled, updatedAt },
      { where: { userId: after.userId, updatedAt: after.updatedAt } },
    ),
  );
}
