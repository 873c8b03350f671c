import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { Database, TenantDatabase } from '../../platform/database/database.js';
import { NotFoundError } from '../../lib/errors.js';
import { creditsOf, grantedOf } from '../../money/ledger/ledger.js';
import { requestMail } from '../mail/request-mail.js';
import { formatAmount } from '../../types/money.js';
import { isMailbox, requireChosenEmail } from './email.js';
import { lockAddresses } from './verify-email.js';

export interface Profile {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly pendingEmail: string | null;
  readonly emailVerified: boolean;
  readonly hasPassword: boolean;
  readonly referralCode: string | null;
  /** Bought and granted credits in US dollars, with six decimals. */
  readonly credits: string;
  readonly createdAt: Date;
}

/** Returns the user's profile. @throws NotFoundError when no such user exists. */
export async function getProfile(tenant: TenantDatabase, userId: string): Promise<Profile> {
  const [row] = await tenant.query<Omit<Profile, 'credits'> & { balance: string | null }>(
    `SELECT id, name, email, pending_email AS "pendingEmail",
            email_verified_at IS NOT NULL AS "emailVerified",
            password_hash IS NOT NULL AS "hasPassword", referral_code AS "referralCode",
            (SELECT sum(balance)::text FROM ledger_accounts
              WHERE name IN ($credits, $granted) AND currency = 'usd') AS balance,
            created_at AS "createdAt"
       FROM users WHERE id = $userId`,
    { userId, credits: creditsOf(userId), granted: grantedOf(userId) },
  );
  if (!row) throw new NotFoundError('User not found');
  const { balance, ...profile } = row;
  return { ...profile, credits: formatAmount(BigInt(balance ?? 0)) };
}

/** A user's changes to their own account; omitted fields stay unchanged. */
export interface ProfileChange {
  readonly name?: string | undefined;
  /** Becomes the account's address once confirmed. The current address cancels a pending change. */
  readonly email?: string | undefined;
}

/** Changes a profile. An address in use elsewhere is accepted, but gets no link. @throws BadRequestError */
export async function changeProfile(
  database: Database,
  userId: string,
  { email, name }: ProfileChange,
  origin: RequestOrigin,
): Promise<void> {
  const address = email === undefined ? undefined : requireChosenEmail(email);
  await database.asPlatform().transaction(async (db) => {
    const addresses = await lockAddresses(db, userId);
    if (!addresses) throw new NotFoundError('User not found');
    const where = { id: userId };
    if (name !== undefined) await db.User.update({ name }, { where });
    if (address === undefined) return;
    const pendingEmail = address === addresses.email ? null : address;
    await db.User.update({ pendingEmail }, { where });
    if (pendingEmail === null) return;
    await recordAudit(db, ofUser(userId, 'email.change-asked', origin));
    await requestMail(db, { kind: 'change-email', address: pendingEmail, userId });
    if (!isMailbox(addresses.email)) return;
    await requestMail(db, { kind: 'email-change-asked', address: addresses.email, userId });
  });
}
