import type { Hex } from 'viem';
import type { Database } from '../database/database.js';
import { Signer, type SignerParts } from './signer.js';
import type { PaymentChain } from './chains.js';
import { signerId, type SignerRef } from './payment-store.js';

/** Payments on this chain cannot be made here: it is not configured. */
export class ChainUnknownError extends Error {
  override readonly name = 'ChainUnknownError';

  constructor(signerId: string) {
    super(`The chain of ${signerId} is not configured`);
  }
}

/** What is final is looked after for so long: a node may be back from an older state. */
const LOOKED_AFTER = '1 hour';
const MAX_LOOKED_AFTER = 200;

/** Those whose payments have become final lately. */
async function paidLately(database: Database): Promise<string[]> {
  const found = await database.asPlatform().query<SignerRef>(
    `SELECT DISTINCT chain_id AS "chainId", signer AS address FROM transactions
      WHERE final_at > now() - interval '${LOOKED_AFTER}' LIMIT ${MAX_LOOKED_AFTER}`,
  );
  return found.map(signerId);
}

/** Those who sign, on all chains that are configured. */
export class Signers {
  readonly #parts: Omit<SignerParts, 'chain'>;
  readonly #chains: readonly PaymentChain[];

  constructor({
    chains,
    ...parts
  }: Omit<SignerParts, 'chain' | 'gaps'> & { chains: readonly PaymentChain[] }) {
    this.#parts = { ...parts, gaps: new Set() };
    this.#chains = chains;
  }

  /**
   * @param owner whose wallet it is, where that is known: what is asked of the chain for one owner keeps nobody
   *   else's waiting, and the platform's own signer, for whom all wait, goes first.
   * @throws ChainUnknownError
   */
  of(id: string, owner?: string): Signer {
    const [chainId, address] = id.split('-');
    const found = this.#chains.find((each) => String(each.chainId) === chainId);
    if (!found || address === undefined) throw new ChainUnknownError(id);
    const isUrgent = address === this.#parts.keys.operator;
    const node = found.node.askedFor({ owner: owner ?? address, isUrgent });
    return new Signer({ ...this.#parts, chain: { ...found, node } }, address as Hex); // as its row has it
  }

  /**
   * Sends again what became final lately and is not on its chain any more.
   *
   * @throws of the first that could not be looked at, when all have been.
   */
  async restore(): Promise<void> {
    const ids = await paidLately(this.#parts.database);
    const looks = ids.map(async (id) => this.of(id).restore());
    const failed = (await Promise.allSettled(looks)).find((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
  }
}
