import { entitled, type Entitlement } from '../accounts/accounts/entitlement.js';
import { requireAgents, type Page } from '../agents/agents/agents.js';
import { reserveMessages } from '../bus/daily-messages.js';
import { recordAudit } from '../platform/audit/audit.js';
import type { Requester } from '../platform/audit/requester.js';
import type { TenantDatabase, TenantTransaction } from '../platform/database/database.js';
import {
  BadRequestError,
  ConflictError,
  NotFoundError,
  TooManyRequestsError,
} from '../lib/errors.js';
import { PLAN_LIMITS, type Plan } from '../types/plans.js';
import type { MemberStatus, SwarmAction, SwarmStatus, SwarmStrategy } from '../types/swarms.js';
import { messagesOf } from './swarm-messages.js';

/** Maximum number of unfinished swarms of a user. */
export const MAX_IN_FLIGHT = 5;

/** Maximum number of swarms that are kept for a user; a new one removes the oldest that has ended. */
const MAX_KEPT = 200;

const RETRY_AFTER_S = 60;

export interface NewSwarm {
  readonly name: string;
  readonly task: string;
  readonly agentIds: readonly string[];
  readonly strategy: SwarmStrategy;
  /** The first agent by default. */
  readonly coordinatorId?: string | undefined;
}

/** The owner of a swarm, with the plan of the moment. */
export interface SwarmOwner extends Pick<Entitlement, 'userId' | 'isAdmin'> {
  readonly plan: Plan | undefined;
}

export interface SwarmMember {
  readonly agentId: string;
  readonly position: number;
  readonly status: MemberStatus;
  readonly output: string | null;
  readonly error: string | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
}

export interface Swarm {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly task: string;
  readonly strategy: SwarmStrategy;
  readonly coordinatorId: string;
  readonly status: SwarmStatus;
  readonly result: string | null;
  readonly error: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly members: readonly SwarmMember[];
}

const COLUMNS = `id, user_id AS "userId", name, task, strategy, coordinator_id AS "coordinatorId", status,
  result, error, created_at AS "createdAt", started_at AS "startedAt", finished_at AS "finishedAt"`;

/** The swarms of users; runs of `runSwarm` carry them out. */
export class Swarms {
  /**
   * Stores a swarm, whose run starts at once. The same request again returns the first swarm.
   * @throws PaymentRequiredError without a plan; NotFoundError for an agent that is not the owner's;
   * BadRequestError for a coordinator that is no member; TooManyRequestsError
   */
  async create(by: Requester, owner: SwarmOwner, wanted: NewSwarm): Promise<Swarm> {
    const { plan } = entitled(owner.userId, owner.isAdmin, owner.plan);
    const { agentIds, name, strategy, task } = wanted;
    const [first = ''] = agentIds;
    const { coordinatorId = first } = wanted;
    if (!agentIds.includes(coordinatorId)) {
      throw new BadRequestError('coordinatorId must be one of agentIds');
    }
    const { userId } = owner;
    const id = by.idempotencyId;
    await by.tenant.transaction(async (db) => {
      await lockSwarmsOf(db, userId);
      const [earlier] = await db.query('SELECT FROM swarms WHERE id = $id', { id });
      if (earlier) return;
      await requireAgents(db, userId, agentIds);
      await requirePlace(db, userId);
      await removeOldest(db, userId);
      const members = agentIds.map((agentId, position) => ({
        agentId,
        position,
        status: 'waiting' as const,
      }));
      const reserved = messagesOf({ strategy, coordinatorId }, members);
      const day = await reserve(db, userId, reserved, plan);
      await db.query(
        `INSERT INTO swarms (id, user_id, name, task, strategy, coordinator_id, reserved, reserved_on,
                             created_at)
         VALUES ($id, $userId, $name, $task, $strategy, $coordinatorId, $reserved, $day::date, date_trunc('milliseconds', now()))`,
        { id, userId, name, task, strategy, coordinatorId, reserved, day },
      );
      await db.query(
        `INSERT INTO swarm_members (swarm_id, position, user_id, agent_id)
         SELECT $id, position - 1, $userId, agent_id
           FROM unnest($agentIds::text[]) WITH ORDINALITY AS m (agent_id, position)`,
        { id, userId, agentIds },
      );
      await audit(db, by, userId, 'swarm.create', id);
    });
    return getSwarm(by.tenant, id);
  }

  /**
   * Cancels or retries a swarm. @throws NotFoundError; ConflictError in a state that does not allow it; for a
   * retry the errors of `create`
   */
  async change(by: Requester, owner: SwarmOwner, id: string, action: SwarmAction): Promise<Swarm> {
    await (action === 'cancel' ? this.#cancel(by, owner, id) : this.#retry(by, owner, id));
    return getSwarm(by.tenant, id);
  }

  /** Ends a swarm: turns in progress end by themselves, and no further question is sent. */
  async #cancel(by: Requester, { userId }: SwarmOwner, id: string): Promise<void> {
    await by.tenant.transaction(async (db) => {
      const { status } = await findSwarm(db, userId, id);
      if (status !== 'pending' && status !== 'running') throw notAllowed('cancel', status);
      await db.query(
        `UPDATE swarms SET status = 'cancelled', error = NULL, finished_at = now(), due_at = now()
          WHERE id = $id`,
        { id },
      );
      await audit(db, by, userId, 'swarm.cancel', id);
    });
  }

  /** Sends the question again to the unfinished members. */
  async #retry(by: Requester, owner: SwarmOwner, id: string): Promise<void> {
    const { userId } = owner;
    const { plan } = entitled(userId, owner.isAdmin, owner.plan);
    await by.tenant.transaction(async (db) => {
      await lockSwarmsOf(db, userId);
      const swarm = await findSwarm(db, userId, id);
      const { isSettled, status } = swarm;
      if (status !== 'failed' && status !== 'cancelled') throw notAllowed('retry', status);
      if (!isSettled) {
        const message = 'The swarm still waits for answers to earlier questions: retry later';
        throw new ConflictError(message, 'SWARM_STATE');
      }
      await requirePlace(db, userId);
      const members = await membersOf(db, [id]);
      const reserved = messagesOf(swarm, members);
      const day = await reserve(db, userId, reserved, plan);
      await db.query(
        `UPDATE swarm_members
            SET status = 'waiting', output = NULL, error = NULL, started_at = NULL, finished_at = NULL
          WHERE swarm_id = $id AND status <> 'done'`,
        { id },
      );
      await db.query(
        `UPDATE swarms
            SET status = 'pending', round = round + 1, merge = NULL, result = NULL, error = NULL,
                reserved = $reserved, reserved_on = $day::date, sent = 0, settled_at = NULL,
                due_at = now(), started_at = NULL, finished_at = NULL
          WHERE id = $id`,
        { id, reserved, day },
      );
      await audit(db, by, userId, 'swarm.retry', id);
    });
  }
}

/** Returns a swarm with its members. @throws NotFoundError */
export async function getSwarm(tenant: TenantDatabase, id: string): Promise<Swarm> {
  return tenant.transaction(async (db) => {
    const [swarm] = await db.query<Omit<Swarm, 'members'>>(
      `SELECT ${COLUMNS} FROM swarms WHERE id = $id`,
      { id },
    );
    if (!swarm) throw notFound();
    return { ...swarm, members: await membersOf(db, [id]) };
  });
}

/** Lists a user's swarms, newest first, after a previous page's `next`. */
export async function listSwarms(
  tenant: TenantDatabase,
  userId: string,
  { after, limit }: { readonly limit: number; readonly after?: readonly string[] | undefined },
): Promise<Page<Swarm>> {
  return tenant.transaction(async (db) => {
    const rows = await db.query<Omit<Swarm, 'members'>>(
      `SELECT ${COLUMNS} FROM swarms
        WHERE user_id = $userId
          ${after === undefined ? '' : 'AND (created_at, id) < ($at::timestamptz, $id)'}
        ORDER BY created_at DESC, id DESC LIMIT $most`,
      { userId, ...(after && { at: after[0], id: after[1] }), most: limit + 1 },
    );
    const page = rows.slice(0, limit);
    const ids = page.map(({ id }) => id);
    const members = await membersOf(db, ids);
    const items = page.map((swarm) => ({
      ...swarm,
      members: members.filter(({ swarmId }) => swarmId === swarm.id),
    }));
    const last = rows.length > limit ? items.at(-1) : undefined;
    return { items, next: last && [last.createdAt.toISOString(), last.id] };
  });
}

const membersOf = (
  db: TenantTransaction,
  ids: readonly string[],
): Promise<(SwarmMember & { readonly swarmId: string })[]> =>
  db.query(
    `SELECT swarm_id AS "swarmId", position, agent_id AS "agentId", status, output, error,
            started_at AS "startedAt", finished_at AS "finishedAt"
       FROM swarm_members WHERE swarm_id = ANY ($ids) ORDER BY swarm_id, position`,
    { ids },
  );

interface Found extends Pick<Swarm, 'coordinatorId' | 'status' | 'strategy'> {
  readonly isSettled: boolean;
}

/** Returns a user's swarm, locked. @throws NotFoundError */
async function findSwarm(db: TenantTransaction, userId: string, id: string): Promise<Found> {
  const [found] = await db.query<Found>(
    `SELECT coordinator_id AS "coordinatorId", status, strategy, settled_at IS NOT NULL AS "isSettled"
       FROM swarms WHERE id = $id AND user_id = $userId FOR UPDATE`,
    { id, userId },
  );
  if (!found) throw notFound();
  return found;
}

/** Serializes a user's creations and retries, so that two concurrent ones cannot exceed a limit. */
const lockSwarmsOf = (db: TenantTransaction, userId: string): Promise<void> =>
  db.lock(`swarms-of:${userId}`);

async function requirePlace(db: TenantTransaction, userId: string): Promise<void> {
  const [found] = await db.query<{ current: number }>(
    `SELECT count(*)::int AS current FROM swarms WHERE user_id = $userId AND settled_at IS NULL`,
    { userId },
  );
  const current = found?.current ?? 0;
  if (current < MAX_IN_FLIGHT) return;
  throw new TooManyRequestsError(
    'Too many of your swarms are under way: retry when one has ended',
    { max: MAX_IN_FLIGHT, resetS: RETRY_AFTER_S },
    'SWARM_LIMIT_REACHED',
    { current, limit: MAX_IN_FLIGHT },
  );
}

async function removeOldest(db: TenantTransaction, userId: string): Promise<void> {
  await db.query(
    `DELETE FROM swarms WHERE id IN (
       SELECT id FROM swarms WHERE user_id = $userId AND settled_at IS NOT NULL
        ORDER BY created_at DESC, id DESC OFFSET ${MAX_KEPT - 1})`,
    { userId },
  );
}

const reserve = (db: TenantTransaction, userId: string, count: number, plan: Plan) =>
  reserveMessages(db, userId, { count, daily: PLAN_LIMITS[plan].agentMessagesPerDay });

const audit = (
  db: TenantTransaction,
  { actor, requestId }: Requester,
  userId: string,
  action: string,
  subject: string,
): Promise<void> => recordAudit(db, { actor, userId, action, subject, requestId });

const notFound = (): NotFoundError => new NotFoundError('Swarm not found');

const notAllowed = (action: SwarmAction, status: SwarmStatus): ConflictError =>
  new ConflictError(`A swarm that is ${status} does not allow ${action}`, 'SWARM_STATE');
