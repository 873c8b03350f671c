import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { WALLET_EMAIL_SUFFIX } from './email.js';
import { signInWithIdentity, type IdentityStore } from './identities.js';
import { createAccount } from './new-account.js';
import { IdentityRefusedError, type ProvenIdentity } from './proven-identity.js';
import type { IdentityProof } from './sign-in.js';
import { WALLET_ISSUER } from '../../types/sign-in-methods.js';

/** Returns the identity of a wallet that was just proven. @param address in lower case. */
export const walletIdentity = (address: string) =>
  ({
    kind: 'wallet',
    issuer: WALLET_ISSUER,
    subject: address,
    label: address,
  }) as const satisfies ProvenIdentity;

/**
 * Signs in by a wallet that was just proven: to its linked account, or to that of its own (lower-case) address,
 * which is created if missing.
 * @throws IdentityRefusedError when the wallet is disabled, or was unlinked from the latter account.
 */
export async function signInByWallet(
  store: IdentityStore,
  address: string,
  origin: RequestOrigin,
): Promise<IdentityProof> {
  return store.database.asPlatform().transaction((db) =>
    signInWithIdentity(db, store, {
      identity: walletIdentity(address),
      account: () => accountOf(db, address, origin, store.settings),
      origin,
    }),
  );
}

/** Returns the account of a wallet's own address, or creates it. Refuses one from which it was unlinked. */
async function accountOf(
  db: TenantTransaction,
  address: string,
  origin: RequestOrigin,
  settings: IdentityStore['settings'],
): Promise<string> {
  const email = `${address}${WALLET_EMAIL_SUFFIX}`;
  const known = await db.User.findOne({ where: { email } });
  if (!known) {
    const account = await createAccount(db, { email, name: email, passwordHash: null }, settings);
    await recordAudit(db, ofUser(account.id, 'account.register', origin));
    return account.id;
  }
  const others = await db.Identity.count({ where: { userId: known.id } });
  if (known.passwordHash !== null || others > 0) throw new IdentityRefusedError('LinkRefused');
  return known.id;
}
