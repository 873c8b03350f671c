import type { Hex } from 'viem';
import type { Database } from '../../platform/database/database.js';
import { Signer, type SignerParts } from './signer.js';
import type { PaymentChain } from './chains.js';
import { signerId, type SignerRef } from './payment-store.js';

/** The chain is not configured, so no payments can be made on it. */
export class ChainUnknownError extends Error {
  override readonly name = 'ChainUnknownError';

  constructor(signerId: string) {
    super(`The chain of ${signerId} is not configured: configure it and retry`);
  }
}

/** Time for which final transactions are checked: a node may return with an older state. */
const CHECKED_AFTER = '1 hour';

const BATCH = 200;

/** Finds signers on the given chains with recently final transactions: the next batch by address. */
const paidLately = (
  database: Database,
  chainIds: readonly number[],
  after: SignerRef | undefined,
): Promise<SignerRef[]> =>
  database.asPlatform().query<SignerRef>(
    `SELECT DISTINCT chain_id::double precision AS "chainId", signer AS address FROM transactions
      WHERE final_at > now() - interval '${CHECKED_AFTER}' AND chain_id = ANY ($chainIds::bigint[])
        AND (signer, chain_id) > ($address, $chainId::bigint)
      ORDER BY address, "chainId" LIMIT ${BATCH}`,
    { chainIds, address: after?.address ?? '', chainId: after?.chainId ?? 0 },
  );

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
   * Returns a signer. Owners share the node fairly; the platform's own signer has priority, because all users
   * wait for it. @throws ChainUnknownError
   */
  of(id: string, owner?: string): Signer {
    const [chainId, address] = id.split('-');
    const found = this.#chains.find((each) => String(each.chainId) === chainId);
    if (!found || address === undefined) throw new ChainUnknownError(id);
    const isUrgent = address === this.#parts.keys.operator;
    const node = found.node.onBehalfOf({ owner: owner ?? address, isUrgent });
    return new Signer({ ...this.#parts, chain: { ...found, node } }, address as Hex); // in the format of its row
  }

  /**
   * Sends transactions again that became final recently and are missing on their chain.
   *
   * @throws the error of the first signer that failed, after all were checked.
   */
  async restore(): Promise<void> {
    const chainIds = this.#chains.map(({ chainId }) => chainId);
    let failed: PromiseRejectedResult | undefined;
    let after: SignerRef | undefined;
    do {
      const signers = await paidLately(this.#parts.database, chainIds, after);
      const restored = signers.map(async (signer) => this.of(signerId(signer)).restore());
      const ended = await Promise.allSettled(restored);
      failed ??= ended.find((each) => each.status === 'rejected');
      after = signers.length === BATCH ? signers.at(-1) : undefined;
    } while (after);
    if (failed) throw failed.reason;
  }
}
