import type { TenantTransaction } from '../../platform/database/database.js';
import type { MailKind } from '../../types/mail-kinds.js';
import { requestMail } from '../mail/request-mail.js';
import { isMailbox } from './email.js';

/** Maximum number of notices of one kind an hour: more than an account can have keys or identities at a time. */
const MAX_NOTICES_AN_HOUR = 60;

/** Kinds of notices about what was added to an account, or removed from it, and about its plan. */
type AccountNotice = Extract<
  MailKind,
  'key-added' | 'sign-in-added' | 'sign-in-removed' | 'plan-ended'
>;

/** Requests a notice to the account's address, if the address is verified. Needs a platform transaction. */
export async function requestNotice(
  db: TenantTransaction,
  userId: string,
  kind: AccountNotice,
): Promise<void> {
  const [user] = await db.query<{ email: string }>(
    'SELECT email FROM users WHERE id = $userId AND email_verified_at IS NOT NULL',
    { userId },
  );
  if (user === undefined || !isMailbox(user.email)) return;
  await requestMail(db, { kind, address: user.email, userId }, MAX_NOTICES_AN_HOUR);
}
