import type { Logger } from 'pino';
import { OPERATOR_USER_ID } from '../types/operator-user.js';
import type { Database, Statements } from '../platform/database/database.js';
import type { PendingNotificationRow } from '../platform/database/models.js';
import type { Notification } from '../types/notification.js';
import type { Notifier } from './notifier.js';

/** What stands in the place of the agent where what is told is of none. */
export const NO_AGENT = { agentId: '', userId: OPERATOR_USER_ID } as const;

/** Taken up at a time. */
const MAX_TOGETHER = 10;

/** Longer than the sending of those takes: by then whoever took one up has died over it. */
const ABANDONED_S = 120;

/** Takes those up that are due, each for this process alone: of each owner one, then the next. */
const TAKE = `
  UPDATE pending_notifications SET due_at = now() + interval '${ABANDONED_S} seconds'
  WHERE id IN (
    SELECT pending.id FROM pending_notifications AS pending JOIN (
      SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY due_at) AS place
      FROM pending_notifications WHERE due_at <= now()
    ) AS dealt USING (id)
    WHERE pending.due_at <= now()
    ORDER BY dealt.place, pending.due_at LIMIT ${MAX_TOGETHER} FOR UPDATE OF pending SKIP LOCKED
  )
  RETURNING id, agent_id AS "agentId", user_id AS "userId", event`;

const PUT_OFF = `
  UPDATE pending_notifications SET due_at = now() + $delayMs * interval '1 millisecond'
  WHERE id = $id`;

/**
 * Has operators told of what the same transaction writes down: whoever wrote it need not wait for
 * that. The same one again is one.
 */
export async function putInOutbox(
  db: Statements,
  { id, agent: { agentId, userId }, ...event }: Notification,
): Promise<void> {
  await db.query(
    `INSERT INTO pending_notifications (id, agent_id, user_id, event)
     VALUES ($id, $agentId, $userId, $event::jsonb) ON CONFLICT DO NOTHING`,
    { id, agentId: agentId || null, userId, event: JSON.stringify(event) },
  );
}

/** What sends that which waits in the outbox. */
export interface OutboxParts {
  readonly database: Database;
  readonly notifier: Pick<Notifier, 'notify'>;
  readonly log: Logger;
}

/**
 * Tells operators what they are to be told now. Any number of processes may do so at once; what one
 * of them dies over, another one tells.
 *
 * @returns how many it took up.
 */
export async function sendDue(parts: OutboxParts): Promise<number> {
  const due = await parts.database.asPlatform().query<Taken>(TAKE);
  await Promise.all(due.map((pending) => send(parts, pending)));
  return due.length;
}

type Taken = Omit<PendingNotificationRow, 'dueAt'>;

async function send({ database, notifier, log }: OutboxParts, pending: Taken): Promise<void> {
  const { id, userId, event } = pending;
  const agentId = pending.agentId ?? NO_AGENT.agentId;
  const waits: number[] = [];
  try {
    for (const delivery of await notifier.notify({ id, agent: { agentId, userId }, ...event })) {
      const { channel, outcome } = delivery;
      if (outcome === 'waiting') waits.push(delivery.delayMs);
      if (outcome === 'dropped') {
        const { reason } = delivery;
        log.warn({ agentId, channel, event: event.event, reason }, 'notification dropped');
      }
    }
  } catch (error) {
    // Nobody knows how far it came: it is taken up again.
    log.warn({ err: error, agentId }, 'operators could not be told');
    return;
  }
  if (waits.length === 0) {
    await database.asPlatform().query('DELETE FROM pending_notifications WHERE id = $id', { id });
  } else {
    await database.asPlatform().query(PUT_OFF, { id, delayMs: Math.min(...waits) });
  }
}
