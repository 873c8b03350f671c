import { findUser } from '../accounts/users.js';
import { recordAudit } from '../audit/audit.js';
import type { Requester } from '../audit/requester.js';
import type { Database } from '../database/database.js';
import { NotFoundError } from '../errors.js';
import {
  setHeartbeat,
  type Heartbeat,
  type HeartbeatChange,
  type HeartbeatScheduler,
} from './heartbeats.js';

/** The heartbeats that users set for their agents. */
export class UserHeartbeats {
  readonly #database: Database;
  readonly #scheduler: HeartbeatScheduler;

  constructor(database: Database, scheduler: HeartbeatScheduler) {
    this.#database = database;
    this.#scheduler = scheduler;
  }

  /**
   * Changes the setting of whoever asks; what is left out stays.
   *
   * @throws NotFoundError when there is no such user
   * @throws UnavailableError when Temporal cannot be reached: then the setting is as before
   */
  async set({ actor, requestId }: Requester, change: HeartbeatChange): Promise<Heartbeat> {
    if (!(await findUser(this.#database, actor))) throw new NotFoundError('User not found');
    const tenant = this.#database.asUser(actor);
    const heartbeat = await setHeartbeat(tenant, this.#scheduler, actor, change);
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
