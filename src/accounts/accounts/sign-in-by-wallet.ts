import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import { WALLET_EMAIL_SUFFIX } from './email.js';
import { proveByIdentity, type IdentityStore } from './identities.js';
import { createAccount } from './new-account.js';
import { IdentityRefusedError, type ProvenIdentity } from './proven-identity.js';
import type { IdentityProof } from './sign-in.js';
import { WALLET_ISSUER } from '../../types/sign-in-methods.js';

/** A wallet that was just proven. @param address in lower case. */
export const walletIdentity = (address: string) =>
  ({
    kind: 'wallet',
    issuer: WALLET_ISSUER,
    subject: address,
    label: address,
  }) as const satisfies ProvenIdentity;

/**
 * Finds whose a wallet is that has just been proven: the account that it is linked to, or the one of its
 * own address, which is made when there is none.
 *
 * @param address in lower case.
 * @throws IdentityRefusedError when the wallet may not sign in: it is disabled, or the account of its own
 *   address has given it up for another way in.
 */
export async function signInByWallet(
  store: IdentityStore,
  address: string,
  origin: RequestOrigin,
): Promise<IdentityProof> {
  return store.database.asPlatform().transaction((db) =>
    proveByIdentity(db, store, {
      identity: walletIdentity(address),
      account: () => accountOf(db, address, origin, store.settings),
      origin,
    }),
  );
}

/** The account of a wallet's own address; none when it has other ways in, and not this one any more. */
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
