import { Op } from 'sequelize';
import type { Logger } from 'pino';
import type { AgentOperations } from '../agents/lifecycle/agent-operations.js';
import type { Database } from '../platform/database/database.js';
import { removeTasks } from '../agents/operations/remove-tasks.js';
import { UserHeartbeats } from '../agents/heartbeat/user-heartbeats.js';
import type { PlanEndings } from '../billing/plan-endings.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import {
  CleanupPendingError,
  type AccountCleanup,
} from '../accounts/accounts/account-deletions.js';
import { endSource, type Icecast } from '../radio/icecast.js';
import { mountOf, type Mount } from '../radio/mounts.js';
import { OPEN_STATUSES } from '../types/split-states.js';
import { revokeRefreshToken, type TokenRevoker } from '../accounts/accounts/identities.js';
import type { MediaFiles } from '../videos/media-files.js';
import { removeVideosOf } from '../videos/videos.js';
import { takeBackReferralCredits } from '../accounts/accounts/referral-credits.js';

/** Maximum number of agents that one attempt removes; the next attempt continues. */
const MAX_AT_ONCE = 200;

/** Maximum number of measurements that one attempt removes. */
const MAX_SAMPLES = 50_000;

/** Milliseconds for which an unresponsive identity provider can delay an account deletion: a day. */
const PROVIDER_MS = 24 * 60 * 60_000;

interface AreaParts {
  readonly database: Database;
  readonly operations: Pick<AgentOperations, 'remove'>;
  readonly planEndings: Pick<PlanEndings, 'endAll'>;
  readonly secrets: SecretBox;
  readonly media: MediaFiles;
  /** Undefined when no identity provider is configured. */
  readonly identityProvider: TokenRevoker | undefined;
  /** Undefined without a radio. */
  readonly icecast: Pick<Icecast, 'endSource'> | undefined;
  readonly log: Logger;
}

/** Returns the areas that hold account data outside rows referring to the account, in removal order. */
export function accountCleanups(parts: AreaParts): readonly AccountCleanup[] {
  return [
    subscriptions(parts.planEndings),
    agents(parts.database, parts.operations),
    metrics(parts.database),
    heartbeats(parts.database),
    scheduledTasks(parts.database),
    refreshTokens(parts),
    splits(parts.database),
    referralCredits(parts.database),
    radio(parts.database, parts.icecast),
    videos(parts.database, parts.media),
  ];
}

/** Cancels what the account pays for, before anything else; waits while the payment processor is unavailable. */
const subscriptions = (planEndings: Pick<PlanEndings, 'endAll'>): AccountCleanup => ({
  name: 'subscriptions',
  async release({ userId }) {
    const making = await planEndings.endAll(userId).catch((cause: unknown) => {
      const message = 'The payment processor has not cancelled the subscriptions';
      throw new CleanupPendingError(message, { cause });
    });
    if (making > 0) throw new CleanupPendingError(`${making} checkouts are being made`);
  },
});

/** Removes the agents as their owner would, each through its supervisor. */
const agents = (
  database: Database,
  operations: Pick<AgentOperations, 'remove'>,
): AccountCleanup => ({
  name: 'agents',
  async release({ userId, requestId }) {
    const tenant = database.asUser(userId);
    const requested = await tenant.query<{ id: string }>(
      `SELECT id FROM agents WHERE user_id = $userId AND desired <> 'deleted'
        ORDER BY id LIMIT ${MAX_AT_ONCE}`,
      { userId },
    );
    for (const { id } of requested) {
      const by = { tenant, actor: userId, requestId, idempotencyId: `account-deletion-${id}` };
      await operations.remove(by, id);
    }
    const [left] = await tenant.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM agents a
        WHERE user_id = $userId AND (deleted_at IS NULL OR EXISTS
          (SELECT FROM operations o WHERE o.agent_id = a.id AND o.finished_at IS NULL))`,
      { userId },
    );
    if (left && left.count > 0)
      throw new CleanupPendingError(`${left.count} agents are being removed`);
  },
});

/** Removes the measurements of the agents in parts, so that no statement takes long. */
const metrics = (database: Database): AccountCleanup => ({
  name: 'metrics',
  async release({ userId }) {
    for (const table of ['agent_samples', 'agent_sample_sums']) {
      const [row] = await database.asUser(userId).query<{ removed: number }>(
        `WITH gone AS (
           DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
             SELECT s.ctid FROM agents a JOIN ${table} s ON s.agent_id = a.id
              WHERE a.user_id = $userId LIMIT ${MAX_SAMPLES}))
           RETURNING 1)
         SELECT count(*)::integer AS removed FROM gone`,
        { userId },
      );
      if (row?.removed === MAX_SAMPLES) {
        throw new CleanupPendingError('The measurements of agents are being removed');
      }
    }
  },
});

/** Disables the user's heartbeat, so that the schedule sync removes its schedule. */
const heartbeats = (database: Database): AccountCleanup => ({
  name: 'heartbeats',
  async release({ userId: actor, requestId }) {
    const tenant = database.asUser(actor);
    const setting = await tenant.transaction((db) => db.Heartbeat.findByPk(actor));
    if (!setting) return;
    if (setting.enabled) {
      const by = { tenant, actor, requestId, idempotencyId: requestId };
      await new UserHeartbeats(database).set(by, { enabled: false });
    } else if (setting.scheduled) return;
    throw new CleanupPendingError('The schedule of the heartbeat is being removed');
  },
});

/** Removes the tasks; each row stays until its schedule is removed. */
const scheduledTasks = (database: Database): AccountCleanup => ({
  name: 'scheduled tasks',
  async release({ userId }) {
    const tenant = database.asUser(userId);
    await removeTasks(tenant, { userId });
    const [left] = await tenant.query<{ count: number }>(
      'SELECT count(*)::integer AS count FROM scheduled_tasks WHERE user_id = $userId',
      { userId },
    );
    if (left && left.count > 0)
      throw new CleanupPendingError(`The schedules of ${left.count} tasks are being removed`);
  },
});

/** Revokes refresh tokens at the identity provider; a permanent failure does not block the deletion. */
const refreshTokens = (
  parts: Omit<AreaParts, 'icecast' | 'operations' | 'planEndings'>,
): AccountCleanup => ({
  name: 'refresh tokens',
  async release({ userId, requestedAt }) {
    const { database, identityProvider, log, secrets } = parts;
    const tenant = database.asUser(userId);
    const where = { userId, refreshToken: { [Op.ne]: null } };
    for (const identity of await tenant.transaction((db) => db.Identity.findAll({ where }))) {
      const { id } = identity;
      try {
        await revokeRefreshToken(secrets, identityProvider, identity);
      } catch (cause) {
        if (Date.now() - requestedAt.getTime() < PROVIDER_MS) {
          throw new CleanupPendingError('The identity provider has not revoked a token', { cause });
        }
        log.warn({ err: cause, identityId: id }, 'a refresh token was not revoked');
      }
      // Revoking a token twice is harmless; clearing the token saves the provider a request.
      await tenant.transaction((db) =>
        db.Identity.update({ refreshToken: null }, { where: { id } }),
      );
    }
  },
});

/** Waits until no split is in flight, so that every requested split is paid and recorded. */
const splits = (database: Database): AccountCleanup => ({
  name: 'splits',
  async release({ userId }) {
    const where = { userId, status: OPEN_STATUSES };
    const open = await database
      .asUser(userId)
      .transaction((db) => db.RoyaltySplit.count({ where }));
    if (open > 0) throw new CleanupPendingError(`${open} splits are being paid`);
  },
});

/** Ends the holds of referral credits, which can no longer be spent. */
const referralCredits = (database: Database): AccountCleanup => ({
  name: 'referral credits',
  release: ({ userId }) => takeBackReferralCredits(database, userId),
});

/** Removes the streams and ends their sources. */
const radio = (
  database: Database,
  icecast: Pick<Icecast, 'endSource'> | undefined,
): AccountCleanup => ({
  name: 'radio',
  async release({ userId }) {
    const removed = await database
      .asUser(userId)
      .query<Mount>('DELETE FROM radio_streams WHERE user_id = $userId RETURNING id, format', {
        userId,
      });
    if (!icecast) return;
    await Promise.all(removed.map((stream) => endSource(icecast, mountOf(stream))));
  },
});

/** Cancels unfinished videos, and deletes the files of all. */
const videos = (database: Database, media: MediaFiles): AccountCleanup => ({
  name: 'videos',
  async release({ userId }) {
    const open = await removeVideosOf(database, media, userId);
    if (open > 0) throw new CleanupPendingError(`${open} videos are being cancelled`);
  },
});
