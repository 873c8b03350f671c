import type { Hex } from 'viem';
import { WALLET_ISSUER } from '../../types/sign-in-methods.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { TokenGate } from './token-gate.js';

/** Wallets of one account that are looked at. */
const MAX_WALLETS = 20;

/** Whether somebody passes, and what it was decided by. */
export interface GateAnswer {
  /** It holds enough, and is proven to be theirs. */
  readonly verified: boolean;
  readonly holds: boolean;
  readonly proven: boolean;
  /** In lower case; null where there is none to look at. */
  readonly address: Hex | null;
  /** Whole tokens in decimals, as is the threshold. */
  readonly balance: string;
  readonly threshold: string;
  /** The token's contract. */
  readonly token: string;
  readonly chainId: number;
}

/** An address of which something else has proven that it is theirs. */
export async function checkProvenAddress(gate: TokenGate, address: Hex): Promise<GateAnswer> {
  return answer(gate, [address], true);
}

/**
 * Whether who is signed in holds enough of the platform's token.
 *
 * @param tenant the database as they see it; undefined for who is not signed in.
 * @param address in lower case; without one, the linked wallet that holds most counts.
 * @throws NoTokenError, ChainAwayError
 */
export async function checkGate(
  gate: TokenGate,
  tenant: TenantDatabase | undefined,
  address: Hex | undefined,
): Promise<GateAnswer> {
  const linked = tenant ? await linkedWallets(tenant) : [];
  if (address === undefined) return answer(gate, linked, true);
  return answer(gate, [address], linked.includes(address));
}

async function answer(
  gate: TokenGate,
  addresses: readonly Hex[],
  areProven: boolean,
): Promise<GateAnswer> {
  const [most] = await gate.holdingsOf(addresses);
  const holding = most ?? { address: null, holds: false, balance: '0' };
  const proven = areProven && most !== undefined;
  return { ...holding, proven, verified: proven && holding.holds, ...gate.terms };
}

/** In lower case. */
async function linkedWallets(tenant: TenantDatabase): Promise<Hex[]> {
  const wallets = await tenant.query<{ readonly subject: Hex }>(
    `SELECT subject FROM identities
      WHERE user_id = $userId AND kind = 'wallet' AND issuer = $issuer AND disabled_at IS NULL
      ORDER BY created_at, id LIMIT ${MAX_WALLETS}`,
    { userId: tenant.userId ?? '', issuer: WALLET_ISSUER },
  );
  return wallets.map(({ subject }) => subject);
}
