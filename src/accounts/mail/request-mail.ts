import type { TenantTransaction } from '../../platform/database/database.js';
import type { MailKind } from '../../types/mail-kinds.js';
import { tokenKindOf } from './messages.js';

/** Mails of one kind that are sent to one address within an hour. */
export const MAX_MAILS_AN_HOUR = 5;

/** A mail that is to be sent. It says nothing that anybody has typed. */
export interface MailRequest {
  readonly kind: MailKind;
  readonly address: string;
  /** Whose account it is about; left out where that is looked up when it is sent. */
  readonly userId?: string;
}

/**
 * Has a mail sent when the platform's transaction holds: whoever asks need not wait for that. Who asks for a
 * link again while it waits, as when nothing sends mail for hours, gets one. Beyond those of an hour there
 * is none, and nobody is told.
 */
export async function requestMail(
  db: TenantTransaction,
  { address, kind, userId }: MailRequest,
): Promise<void> {
  // One after the other, so that many at once do not all see the others missing.
  await db.lock(`mail:${kind}:${address}`);
  await db.query(
    `INSERT INTO mails (id, kind, address, user_id)
     SELECT gen_random_uuid()::text, $kind, $address, $userId
      WHERE (SELECT count(*) FROM mails
              WHERE address = $address AND kind = $kind
                AND requested_at > now() - interval '1 hour') < ${MAX_MAILS_AN_HOUR}
        AND NOT ($hasLink AND EXISTS (
          SELECT FROM mails WHERE address = $address AND kind = $kind AND settled_at IS NULL
             AND user_id IS NOT DISTINCT FROM $userId AND requested_at > now() - interval '1 day'))`,
    { kind, address, userId: userId ?? null, hasLink: tokenKindOf(kind) !== undefined },
  );
}
