import type { Hex } from 'viem';
import type { Database } from '../../platform/database/database.js';
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

/** So many signers are looked after at a time. */
const BATCH = 200;

/** Those who sign on some chains and whose payments have become final lately: the next of them, by their addresses. */
const paidLately = (
  database: Database,
  chainIds: readonly number[],
  after: SignerRef | undefined,
): Promise<SignerRef[]> =>
  database.asPlatform().query<SignerRef>(
    `SELECT DISTINCT chain_id::double precision AS "chainId", signer AS address FROM transactions
      WHERE final_at > now() - interval '${LOOKED_AFTER}' AND chain_id = ANY ($chainIds::bigint[])
        AND (signer, chain_id) > ($address, $chainId::bigint)
      ORDER BY address, "chainId" LIMIT ${BATCH}`,
    { chainIds, address: after?.address ?? '', chainId: after?.chainId ?? 0 },
  );

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
    const chainIds = this.#chains.map(({ chainId }) => chainId);
    let failed: PromiseRejectedResult | undefined;
    let after: SignerRef | undefined;
    do {
      const signers = await paidLately(this.#parts.database, chainIds, after);
      const looks = signers.map(async (signer) => this.of(signerId(signer)).restore());
      const ended = await Promise.allSettled(looks);
      failed ??= ended.find((each) => each.status === 'rejected');
      after = signers.length === BATCH ? signers.at(-1) : undefined;
    } while (after);
    if (failed) throw failed.reason;
  }
}
