import type { Statements } from '../../platform/database/database.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { normalizeEmail } from './email.js';

/*
 * A mailbox that belongs to an account at the identity provider which was hijacked may be read by the
 * hijacker. Until the provider says that it is its owner's again, no mail that opens an account goes there.
 */

/** By which a mailbox is known without its address being stored. */
const idOf = (email: string): string => tokenHash(normalizeEmail(email));

/** Whether no reset mail may go to the address, and nobody may be linked to an account by it. */
export async function resetMailIsStopped(db: Statements, email: string): Promise<boolean> {
  const found = await db.query('SELECT FROM reset_mail_stops WHERE id = $id AND stopped', {
    id: idOf(email),
  });
  return found.length > 0;
}

/**
 * Keeps what was said of the addresses; what happened before what was said last changes nothing. A link
 * that went to a mailbox before it is stopped is good no more.
 */
export async function setResetMailStops(
  db: Statements,
  emails: readonly string[],
  told: { readonly stopped: boolean; readonly at: Date },
): Promise<void> {
  await db.query(
    `INSERT INTO reset_mail_stops AS kept (id, stopped, told_at)
     SELECT id, $stopped, $at FROM unnest($ids::text[]) AS told (id) ORDER BY id
     ON CONFLICT (id) DO UPDATE SET stopped = EXCLUDED.stopped, told_at = EXCLUDED.told_at
      WHERE kept.told_at <= EXCLUDED.told_at`,
    { ids: [...new Set(emails.map(idOf))], ...told },
  );
  if (!told.stopped) return;
  await db.query(
    `DELETE FROM mail_tokens WHERE kind = 'reset-password' AND email = ANY ($emails)`,
    {
      emails: emails.map(normalizeEmail),
    },
  );
}
