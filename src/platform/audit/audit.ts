import type { Statements } from '../database/database.js';

/** One thing that somebody did. Never holds a secret. */
export interface AuditRecord {
  /** Who did it: a user's id, or a name of the platform's own. */
  readonly actor: string;
  /** Whose data it is about: the tenant, for a tenant's transaction. */
  readonly userId?: string;
  /** What was done, such as `agent.delete`. */
  readonly action: string;
  /** What it was done to, such as an agent's id. */
  readonly subject: string;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly requestId?: string;
}

/** The request that something was done by, and the client's address. */
export interface RequestOrigin {
  readonly address: string;
  readonly requestId: string;
}

/** What a user did to their own account. */
export const ofUser = (
  userId: string,
  action: string,
  { address, requestId }: RequestOrigin,
): AuditRecord => ({
  ...{ actor: userId, userId, action, subject: userId, requestId },
  detail: { address },
});

/**
 * Adds a record to the audit log: in the transaction given, so that it holds exactly when what it
 * tells of does, or in one of its own. A user's transaction may only record about that user.
 */
export async function recordAudit(db: Statements, record: AuditRecord): Promise<void> {
  await db.query(
    `INSERT INTO audit_log (actor, user_id, action, subject, detail, request_id)
     VALUES ($actor, $userId, $action, $subject, $detail, $requestId)`,
    {
      actor: record.actor,
      userId: record.userId ?? null,
      action: record.action,
      subject: record.subject,
      detail: JSON.stringify(record.detail ?? {}),
      requestId: record.requestId ?? null,
    },
  );
}
