import type { Statements } from '../../platform/database/database.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { normalizeEmail } from './email.js';

/**
 * A hijacker may read a hijacked account's mailbox: no mail that grants access to an account is sent to such
 * a mailbox, and agents accept no mail from such a mailbox.
 */

/** Returns the id of a mailbox, so that its address is not stored. */
const idOf = (email: string): string => tokenHash(normalizeEmail(email));

/** Reports whether the address is blocked from reset mail, from linking to an account, and from writing to agents. */
export async function isResetMailBlocked(db: Statements, email: string): Promise<boolean> {
  const found = await db.query('SELECT FROM reset_mail_stops WHERE id = $id AND stopped', {
    id: idOf(email),
  });
  return found.length > 0;
}

/** Stores the reported state of addresses, unless stored later; a stopped mailbox's links become invalid. */
export async function setResetMailBlocks(
  db: Statements,
  emails: readonly string[],
  change: { readonly stopped: boolean; readonly at: Date },
): Promise<void> {
  await db.query(
    `INSERT INTO reset_mail_stops AS kept (id, stopped, reported_at)
     SELECT id, $stopped, $at FROM unnest($ids::text[]) AS told (id) ORDER BY id
     ON CONFLICT (id) DO UPDATE SET stopped = EXCLUDED.stopped, reported_at = EXCLUDED.reported_at
      WHERE kept.reported_at <= EXCLUDED.reported_at`,
    { ids: [...new Set(emails.map(idOf))], ...change },
  );
  if (!change.stopped) return;
  await db.query(
    `DELETE FROM mail_tokens WHERE kind = 'reset-password' AND email = ANY ($emails)`,
    { emails: emails.map(normalizeEmail) },
  );
}
