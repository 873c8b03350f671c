import { QueryTypes, Transaction } from 'sequelize';
import type { TenantDatabase } from '../database/database.js';
import { sequelizeOf } from '../database/transaction-sql.js';

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

/**
 * Adds a record to the audit log: in the transaction given, so that it holds exactly when what it
 * tells of does, or in one of its own. A user's transaction may only record about that user.
 */
export async function recordAudit(
  where: Transaction | TenantDatabase,
  record: AuditRecord,
): Promise<void> {
  if (where instanceof Transaction) await insert(where, record);
  else await where.transaction((transaction) => insert(transaction, record));
}

async function insert(transaction: Transaction, record: AuditRecord): Promise<void> {
  await sequelizeOf(transaction).query(
    `INSERT INTO audit_log (actor, user_id, action, subject, detail, request_id)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    {
      type: QueryTypes.INSERT,
      transaction,
      bind: [
        record.actor,
        record.userId ?? null,
        record.action,
        record.subject,
        JSON.stringify(record.detail ?? {}),
        record.requestId ?? null,
      ],
    },
  );
}
