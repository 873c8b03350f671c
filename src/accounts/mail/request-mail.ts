import type { TenantTransaction } from '../../platform/database/database.js';
import type { MailKind } from '../../types/mail-kinds.js';
import { tokenKindOf } from './messages.js';

/** Maximum number of mails of one kind to one address within an hour. */
export const MAX_MAILS_AN_HOUR = 5;

/** A mail to send; contains no user input. */
export interface MailRequest {
  readonly kind: MailKind;
  readonly address: string;
  /** The account's id; if omitted, the account is found by address when the mail is sent. */
  readonly userId?: string;
}

/** Stores a mail for sending after the commit; drops repeated ones, and all above the hourly limit. */
export async function requestMail(
  db: TenantTransaction,
  { address, kind, userId }: MailRequest,
  mostAnHour = MAX_MAILS_AN_HOUR,
): Promise<void> {
  // The lock makes concurrent requests see each other's rows.
  await db.lock(`mail:${kind}:${address}`);
  await db.query(
    `INSERT INTO mails (id, kind, address, user_id)
     SELECT gen_random_uuid()::text, $kind, $address, $userId
      WHERE (SELECT count(*) FROM mails
              WHERE address = $address AND kind = $kind
                AND requested_at > now() - interval '1 hour') < $mostAnHour
        AND NOT ($hasLink AND EXISTS (
          SELECT FROM mails WHERE address = $address AND kind = $kind AND settled_at IS NULL
             AND user_id IS NOT DISTINCT FROM $userId AND requested_at > now() - interval '1 day'))`,
    { kind, address, mostAnHour, userId: userId ?? null, hasLink: tokenKindOf(kind) !== undefined },
  );
}
