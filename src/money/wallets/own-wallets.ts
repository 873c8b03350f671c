import type { Hex } from 'viem';
import { WALLET_ISSUER } from '../../types/sign-in-methods.js';
import type { Statements } from '../../platform/database/database.js';

/**
 * Returns a user's own wallets, in lower case: those linked by a signature and not unlinked, and those
 * whose key is stored here for the user. Excludes wallets of agents, and wallets at the provider, which
 * anyone with access to the mailbox can open. Both kinds are limited in number.
 */
export async function ownWallets(db: Statements, userId: string): Promise<Hex[]> {
  const rows = await db.query<{ readonly address: Hex }>(
    `SELECT subject AS address FROM identities
      WHERE user_id = $userId AND kind = 'wallet' AND issuer = $issuer AND disabled_at IS NULL
        AND suspended_at IS NULL
     UNION
     SELECT address FROM wallets
      WHERE user_id = $userId AND kind IN ('user', 'imported') AND suspended_at IS NULL
     ORDER BY address`,
    { userId, issuer: WALLET_ISSUER },
  );
  return rows.map(({ address }) => address);
}
