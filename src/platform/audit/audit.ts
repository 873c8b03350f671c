import type { Statements } from '../database/database.js';

/** An action in the audit log. Never holds a secret. */
export interface AuditRecord {
  /** The actor: a user's id, or a platform name. */
  readonly actor: string;
  /** The user that the data belongs to; in a tenant's transaction, the tenant. */
  readonly userId?: string;
  readonly action: string;
  readonly subject: string;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly requestId?: string;
}

export interface RequestOrigin {
  readonly address: string;
  readonly requestId: string;
}

/** Builds the record of a user's action on their own account, or on another `subject` of theirs. */
export const ofUser = (
  userId: string,
  action: string,
  { address, requestId }: RequestOrigin,
  { subject = userId, detail = {} }: Partial<Pick<AuditRecord, 'subject' | 'detail'>> = {},
): AuditRecord => ({
  actor: userId,
  userId,
  action,
  subject,
  requestId,
  detail: { address, ...detail },
});

/** Adds a record in the given transaction or its own. A user's may only record about that user. */
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
