import { findUser } from '../../accounts/accounts/users.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import { DEFAULT_HEARTBEAT, type Heartbeat } from './heartbeats.js';

export interface HeartbeatChange {
  readonly frequency?: string | undefined;
  readonly enabled?: boolean | undefined;
}

export class UserHeartbeats {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Changes the caller's setting; omitted fields stay. A worker updates the schedule in its next pass.
   * @throws NotFoundError if the user does not exist.
   */
  async set({ actor, requestId }: Requester, change: HeartbeatChange): Promise<Heartbeat> {
    if (!(await findUser(this.#database, actor))) throw new NotFoundError('User not found');
    return this.#database.asUser(actor).transaction(async (db) => {
      const made = { userId: actor, ...DEFAULT_HEARTBEAT, scheduled: true, updatedAt: new Date() };
      await db.Heartbeat.bulkCreate([made], { ignoreDuplicates: true });
      const before = await db.Heartbeat.getByPk(actor, { lock: true });
      const frequency = change.frequency ?? before.frequency;
      const enabled = change.enabled ?? before.enabled;
      const updatedAt = new Date(Math.max(Date.now(), before.updatedAt.getTime() + 1));
      const changed = { frequency, enabled, updatedAt, scheduled: false };
      await db.Heartbeat.update(changed, { where: { userId: actor } });
      await recordAudit(db, {
        actor,
        userId: actor,
        action: 'heartbeat.set',
        subject: actor,
        detail: { enabled, frequency },
        requestId,
      });
      return { ...before, ...changed };
    });
  }
}
