import { normalizeEmail } from '../accounts/email.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import type { RiscEventRow } from '../../platform/database/models.js';
import type { ReportedEvent } from '../../types/security-events.js';

export interface EventSubject {
  readonly userId: string;
  /** Identities at the provider; empty for an account found only by its address. */
  readonly identityIds: readonly string[];
  readonly emails: readonly string[];
}

interface Identity {
  readonly id: string;
  readonly userId: string;
  readonly label: string;
}

/**
 * Finds an event's account: by the subject's id, which the provider never reuses, else by address. The
 * address does not count if another id is linked: it may have a new owner. The account's row stays locked
 * until the transaction ends, against concurrent sign-ins.
 */
export async function findSubject(
  db: TenantTransaction,
  { issuer, matching }: Pick<RiscEventRow, 'issuer' | 'matching'>,
  { email, sub }: ReportedEvent,
): Promise<EventSubject | undefined> {
  const reported = email === undefined ? [] : [email];
  const named = matching === 'subject' ? sub : undefined;
  if (named !== undefined) {
    const [linked] = await identitiesOf(db, 'identities', issuer, 'subject', named);
    // An intruder might unlink the hijacked identity after having added another.
    const identity =
      linked ?? (await identitiesOf(db, 'unlinked_identities', issuer, 'subject', named))[0];
    if (identity) {
      const { id, label, userId } = identity;
      await lockUser(db, 'id', userId);
      return { userId, identityIds: [id], emails: [...reported, label] };
    }
  }
  if (email === undefined) return undefined;
  const userId = await lockUser(db, 'email', normalizeEmail(email));
  if (userId === undefined) return undefined;
  const identities = await identitiesOf(db, 'identities', issuer, 'user_id', userId);
  if (named !== undefined && identities.length > 0) return undefined;
  return {
    userId,
    identityIds: identities.map(({ id }) => id),
    emails: [...reported, ...identities.map(({ label }) => label)],
  };
}

function identitiesOf(
  db: TenantTransaction,
  table: 'identities' | 'unlinked_identities',
  issuer: string,
  by: 'subject' | 'user_id',
  value: string,
): Promise<Identity[]> {
  return db.query<Identity>(
    `SELECT id, user_id AS "userId", label FROM ${table}
      WHERE kind = 'google' AND issuer = $issuer AND ${by} = $value`,
    { issuer, value },
  );
}

/** Locks the account's row before its identities, in the order of sign-ins. */
async function lockUser(
  db: TenantTransaction,
  by: 'id' | 'email',
  value: string,
): Promise<string | undefined> {
  const [user] = await db.query<{ id: string }>(
    `SELECT id FROM users WHERE ${by} = $value FOR NO KEY UPDATE`,
    { value },
  );
  return user?.id;
}
