import { randomUUID } from 'node:crypto';
import { ofUser, recordAudit, type RequestOrigin } from '../audit/audit.js';
import { violates } from '../database/constraints.js';
import type { Database, TenantTransaction } from '../database/database.js';
import type { UserRow } from '../database/models.js';
import { isAdminUser } from './admin.js';
import { createAccount } from './new-account.js';
import { WALLET_EMAIL_SUFFIX } from './email.js';
import type { AccountSettings } from './settings.js';
import type { IdentityProof } from './sign-in.js';

/** Who says whose wallets are: the addresses of all chains that are like Ethereum. */
export const WALLET_ISSUER = 'eip155';

/**
 * Finds whose a wallet is that has just been proven: the account that it is linked to, or the one of its
 * own address, which is made when there is none.
 *
 * @param address in lower case.
 * @returns undefined when the wallet may not sign in: a security event has disabled it, or the account of
 *   its own address has given it up for another way in.
 */
export async function signInByWallet(
  database: Database,
  address: string,
  origin: RequestOrigin,
  settings: Pick<AccountSettings, 'adminEmails' | 'firstIsAdmin'>,
): Promise<IdentityProof | undefined> {
  const attempt = () =>
    database.asPlatform().transaction((db) => proofOf(db, address, origin, settings));
  return attempt().catch((error: unknown) => {
    // Linked to another account meanwhile: it is found there.
    if (violates(error, 'identities_subject_key')) return attempt();
    throw error;
  });
}

async function proofOf(
  db: TenantTransaction,
  address: string,
  origin: RequestOrigin,
  settings: Pick<AccountSettings, 'adminEmails' | 'firstIsAdmin'>,
): Promise<IdentityProof | undefined> {
  // Two first sign-ins at once make one account.
  await db.lock(`wallet ${address}`);
  const found = await findWallet(db, address);
  if (found && found.disabledAt !== null) return undefined;
  const user = found
    ? await db.User.getByPk(found.userId)
    : await accountOf(db, address, origin, settings);
  if (!user) return undefined;
  const identityId = found?.id ?? (await link(db, user.id, address, origin));
  await db.Identity.update({ lastUsedAt: new Date() }, { where: { id: identityId } });
  const { id, email, name } = user;
  return {
    user: { id, email, name, isAdmin: isAdminUser(user, settings) },
    method: 'wallet',
    identityId,
  };
}

const findWallet = (db: TenantTransaction, subject: string) =>
  db.Identity.findOne({ where: { kind: 'wallet', issuer: WALLET_ISSUER, subject } });

/** The account of a wallet's own address; none when it has other ways in, and not this one any more. */
async function accountOf(
  db: TenantTransaction,
  address: string,
  origin: RequestOrigin,
  settings: Pick<AccountSettings, 'firstIsAdmin'>,
): Promise<UserRow | undefined> {
  const email = `${address}${WALLET_EMAIL_SUFFIX}`;
  const known = await db.User.findOne({ where: { email } });
  if (!known) {
    const account = await createAccount(db, { email, name: email, passwordHash: null }, settings);
    await recordAudit(db, ofUser(account.id, 'account.register', origin));
    return account;
  }
  if (known.passwordHash !== null) return undefined;
  const others = await db.Identity.count({ where: { userId: known.id } });
  return others === 0 ? known : undefined;
}

async function link(
  db: TenantTransaction,
  userId: string,
  address: string,
  origin: RequestOrigin,
): Promise<string> {
  const id = randomUUID();
  await db.Identity.create({
    ...{ id, userId, kind: 'wallet', issuer: WALLET_ISSUER, subject: address, label: address },
    createdAt: new Date(),
  });
  await recordAudit(db, { ...ofUser(userId, 'identity.link', origin), subject: id });
  return id;
}
