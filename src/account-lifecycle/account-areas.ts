import { Op } from 'sequelize';
import type { Logger } from 'pino';
import type { AgentOperations } from '../agents/lifecycle/agent-operations.js';
import type { Database } from '../platform/database/database.js';
import { UserHeartbeats } from '../agents/heartbeat/user-heartbeats.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { StillThereError, type AccountArea } from '../accounts/accounts/account-deletions.js';
import { OPEN_STATUSES } from '../types/split-states.js';
import { revokeRefreshToken, type TokenRevoker } from '../accounts/accounts/identities.js';

/** Agents whose removal one attempt asks for: the next one goes on. */
const MAX_AT_ONCE = 200;

/** Milliseconds for which an identity provider that does not answer keeps an account: a day. */
const PROVIDER_MS = 24 * 60 * 60_000;

interface AreaParts {
  readonly database: Database;
  readonly operations: Pick<AgentOperations, 'remove'>;
  readonly secrets: SecretBox;
  /** Undefined where none is configured. */
  readonly identityProvider: TokenRevoker | undefined;
  readonly log: Logger;
}

/** What has something of an account beside rows that refer to it, in the order in which it is asked. */
export function accountAreas(parts: AreaParts): readonly AccountArea[] {
  return [
    agents(parts.database, parts.operations),
    heartbeats(parts.database),
    refreshTokens(parts),
    splits(parts.database),
  ];
}

/** Removes them as their owner would, each by its supervisor. */
const agents = (database: Database, operations: Pick<AgentOperations, 'remove'>): AccountArea => ({
  name: 'agents',
  async leave({ userId, requestId }) {
    const tenant = database.asUser(userId);
    const asked = await tenant.query<{ id: string }>(
      `SELECT id FROM agents WHERE user_id = $userId AND desired <> 'deleted'
        ORDER BY id LIMIT ${MAX_AT_ONCE}`,
      { userId },
    );
    for (const { id } of asked) {
      const by = { tenant, actor: userId, requestId, idempotencyId: `account-deletion-${id}` };
      await operations.remove(by, id);
    }
    const [left] = await tenant.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM agents a
        WHERE user_id = $userId AND (deleted_at IS NULL OR EXISTS
          (SELECT FROM operations o WHERE o.agent_id = a.id AND o.finished_at IS NULL))`,
      { userId },
    );
    if (left && left.count > 0) throw new StillThereError(`${left.count} agents are being removed`);
  },
});

/** Has their schedule taken away, by what lets schedules follow the settings. */
const heartbeats = (database: Database): AccountArea => ({
  name: 'heartbeats',
  async leave({ userId: actor, requestId }) {
    const tenant = database.asUser(actor);
    const setting = await tenant.transaction((db) => db.Heartbeat.findByPk(actor));
    if (!setting) return;
    if (setting.enabled) {
      const by = { tenant, actor, requestId, idempotencyId: requestId };
      await new UserHeartbeats(database).set(by, { enabled: false });
    } else if (setting.scheduled) return;
    throw new StillThereError('The schedule of the heartbeat is being removed');
  },
});

/** Has them revoked at the identity provider; one that is gone for good does not keep the account. */
const refreshTokens = (parts: Omit<AreaParts, 'operations'>): AccountArea => ({
  name: 'refresh tokens',
  async leave({ userId, requestedAt }) {
    const { database, identityProvider, log, secrets } = parts;
    const tenant = database.asUser(userId);
    const where = { userId, refreshToken: { [Op.ne]: null } };
    for (const identity of await tenant.transaction((db) => db.Identity.findAll({ where }))) {
      const { id } = identity;
      try {
        await revokeRefreshToken(secrets, identityProvider, identity);
      } catch (cause) {
        if (Date.now() - requestedAt.getTime() < PROVIDER_MS) {
          throw new StillThereError('The identity provider has not revoked a token', { cause });
        }
        log.warn({ err: cause, identityId: id }, 'a refresh token was not revoked');
      }
      // What is revoked again is no error; this spares the provider the question.
      await tenant.transaction((db) =>
        db.Identity.update({ refreshToken: null }, { where: { id } }),
      );
    }
  },
});

/** Waits until none is under way: what was asked for is paid, and booked. */
const splits = (database: Database): AccountArea => ({
  name: 'splits',
  async leave({ userId }) {
    const where = { userId, status: OPEN_STATUSES };
    const open = await database
      .asUser(userId)
      .transaction((db) => db.RoyaltySplit.count({ where }));
    if (open > 0) throw new StillThereError(`${open} splits are being paid`);
  },
});
