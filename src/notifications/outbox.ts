import type { Logger } from 'pino';
import { OPERATOR_USER_ID } from '../types/operator-user.js';
import type { Database, Statements } from '../platform/database/database.js';
import type { PendingNotificationRow } from '../platform/database/models.js';
import type { Notification } from '../types/notification.js';
import type { Notifier } from './notifier.js';

/** The placeholder agent for events of the platform. */
export const NO_AGENT = { agentId: '', userId: OPERATOR_USER_ID } as const;

/** Maximum number of notifications claimed at a time. */
const MAX_TOGETHER = 10;

/** Seconds until another process may claim a notification, longer than sending takes. */
const ABANDONED_S = 120;

/** Claims due notifications for this process, one of each owner before the next. */
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

/** Stores a notification, once for each id, to be sent after the commit. */
export async function requestNotification(
  db: Statements,
  { id, agent: { agentId, userId }, ...event }: Notification,
): Promise<void> {
  await db.query(
    `INSERT INTO pending_notifications (id, agent_id, user_id, event)
     VALUES ($id, $agentId, $userId, $event::jsonb) ON CONFLICT DO NOTHING`,
    { id, agentId: agentId || null, userId, event: JSON.stringify(event) },
  );
}

/** The dependencies for sending stored notifications. */
export interface OutboxParts {
  readonly database: Database;
  readonly notifier: Pick<Notifier, 'notify'>;
  readonly log: Logger;
}

/** Sends due notifications, those that crashed processes had claimed as well; returns how many. */
export async function sendDue(parts: OutboxParts): Promise<number> {
  const due = await parts.database.asPlatform().query<ClaimedNotification>(TAKE);
  await Promise.all(due.map((pending) => send(parts, pending)));
  return due.length;
}

type ClaimedNotification = Omit<PendingNotificationRow, 'dueAt'>;

async function send(
  { database, notifier, log }: OutboxParts,
  pending: ClaimedNotification,
): Promise<void> {
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
    // The progress is unknown, so the notification stays and is claimed again later.
    log.warn({ err: error, agentId }, 'notifying operators failed');
    return;
  }
  if (waits.length === 0) {
    await database.asPlatform().query('DELETE FROM pending_notifications WHERE id = $id', { id });
  } else {
    await database.asPlatform().query(PUT_OFF, { id, delayMs: Math.min(...waits) });
  }
}
