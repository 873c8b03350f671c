import type { Hex } from 'viem';
import { WALLET_ISSUER } from '../../types/sign-in-methods.js';
import type { Statements } from '../../platform/database/database.js';

/**
 * A user's own wallets, in lower case: those that they have signed with here and have not unlinked, and
 * those whose key is kept here for them. Their agents' are not theirs in this sense, and neither are
 * those at the wallet provider, which whoever has the mailbox opens. There is a bound to both sorts.
 */
export async function linkedWallets(db: Statements, userId: string): Promise<Hex[]> {
  const rows = await db.query<{ readonly address: Hex }>(
    `SELECT subject AS address FROM identities
      WHERE user_id = $userId AND kind = 'wallet' AND issuer = $issuer AND disabled_at IS NULL
     UNION
     SELECT address FROM wallets WHERE user_id = $userId AND kind IN ('user', 'imported')
     ORDER BY address`,
    { userId, issuer: WALLET_ISSUER },
  );
  return rows.map(({ address }) => address);
}

/** Whether it is one of them. @param address in lower case. */
export async function isLinked(db: Statements, userId: string, address: Hex): Promise<boolean> {
  return (await linkedWallets(db, userId)).includes(address);
}
