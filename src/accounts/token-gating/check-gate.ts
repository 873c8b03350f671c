import type { Hex } from 'viem';
import { WALLET_ISSUER } from '../../types/sign-in-methods.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { TokenGate } from './token-gate.js';

/** Maximum number of wallets of one account that are checked. */
const MAX_WALLETS = 20;

export interface GateResult {
  /** True if the address holds enough and is proven to be the user's. */
  readonly verified: boolean;
  readonly holds: boolean;
  readonly proven: boolean;
  /** In lower case; null if there is no address to check. */
  readonly address: Hex | null;
  /** Whole tokens in decimal notation, like the threshold. */
  readonly balance: string;
  readonly threshold: string;
  /** Address of the token's contract. */
  readonly token: string;
  readonly chainId: number;
}

export async function checkProvenAddress(
  gate: TokenGate,
  address: Hex,
  owner: string,
): Promise<GateResult> {
  return answer(gate, [address], { areProven: true, owner });
}

/**
 * Checks if a user holds enough of the platform's token: at this address (lower case), or at the linked wallet
 * with the highest balance.
 * @param owner the user or client on whose behalf the chain is read.
 * @throws NoTokenError, ChainAwayError
 */
export async function checkGate(
  gate: TokenGate,
  tenant: TenantDatabase | undefined,
  address: Hex | undefined,
  owner: string,
): Promise<GateResult> {
  const linked = tenant ? await linkedWallets(tenant) : [];
  if (address === undefined) return answer(gate, linked, { areProven: true, owner });
  return answer(gate, [address], { areProven: linked.includes(address), owner });
}

async function answer(
  gate: TokenGate,
  addresses: readonly Hex[],
  { areProven, owner }: { readonly areProven: boolean; readonly owner: string },
): Promise<GateResult> {
  const [most] = await gate.holdingsOf(addresses, owner);
  const holding = most ?? { address: null, holds: false, balance: '0' };
  const proven = areProven && most !== undefined;
  return { ...holding, proven, verified: proven && holding.holds, ...gate.terms };
}

/** Checks if the best of a user's linked wallets, in lower case, holds enough. @throws NoTokenError, ChainAwayError */
export const checkLinkedWallets = (
  gate: TokenGate,
  wallets: readonly Hex[],
  owner: string,
): Promise<GateResult> => answer(gate, wallets, { areProven: true, owner });

/** Selects a user's linked wallets as `subject`, in lower case. @param user an SQL expression */
export const linkedWalletsSql = (user: string): string =>
  `SELECT subject FROM identities
    WHERE user_id = ${user} AND kind = 'wallet' AND issuer = '${WALLET_ISSUER}'
      AND disabled_at IS NULL AND suspended_at IS NULL
    ORDER BY created_at, id LIMIT ${MAX_WALLETS}`;

async function linkedWallets(tenant: TenantDatabase): Promise<Hex[]> {
  const wallets = await tenant.query<{ readonly subject: Hex }>(linkedWalletsSql('$userId'), {
    userId: tenant.userId ?? '',
  });
  return wallets.map(({ subject }) => subject);
}
