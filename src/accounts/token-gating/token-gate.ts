import { erc20Abi, type Hex } from 'viem';
import { setBounded } from '../../lib/bounded-map.js';
import { isAtLeast, plainDecimal, wholeTokens } from '../../money/chain/amount.js';
import { ChainAwayError, ChainNode, PLATFORM, type Chain } from '../../money/chain/chain-node.js';
import type { ChainSettings } from '../../money/chain/settings.js';
import { UnavailableError } from '../../lib/errors.js';
import { cachedFor } from '../../lib/cached-for.js';

/** Milliseconds for which balances are cached: less than the 30 seconds that the API promises. */
const BALANCE_CACHE_MS = 20_000;
/** Milliseconds for which decimals are cached; a token's decimals do not change. */
const DECIMALS_KEPT_MS = 60 * 60_000;

/** Maximum number of addresses whose balances are cached. */
const MAX_KEPT = 10_000;

/** Maximum number of decimals of a token: limits the size of calculations; no token in use has more. */
const MAX_DECIMALS = 36;

export interface Holding {
  /** In lower case. */
  readonly address: Hex;
  /** True if the balance reaches the threshold. */
  readonly holds: boolean;
  /** Whole tokens in decimal notation. */
  readonly balance: string;
}

/** 503: no platform token is configured. */
export class NoTokenError extends UnavailableError {
  override readonly name = 'NoTokenError';

  constructor() {
    super('Token gating is not configured');
  }
}

/** Checks balances of the platform's token, for features reserved to its holders. */
export class TokenGate {
  readonly #token: NonNullable<ChainSettings['platformToken']> | undefined;
  readonly #node: Chain | undefined;
  readonly #decimals = cachedFor(DECIMALS_KEPT_MS, () => this.#readDecimals());
  readonly #balances = new Map<Hex, (owner: string) => Promise<bigint>>();

  constructor({ platformToken: token }: Pick<ChainSettings, 'platformToken'>) {
    this.#token = token;
    this.#node = token && new ChainNode({ chainId: token.chainId, url: token.rpcUrl });
  }

  /** Token, chain and threshold of the gate. @throws NoTokenError */
  get terms(): { readonly token: string; readonly chainId: number; readonly threshold: string } {
    if (!this.#token) throw new NoTokenError();
    const { address, chainId, threshold } = this.#token;
    return { token: address.toLowerCase(), chainId, threshold: plainDecimal(threshold) };
  }

  /**
   * Returns the balances of addresses, at most half a minute old, highest first.
   * @param addresses in lower case, limited in number.
   * @param owner the user or client on whose behalf the chain is read.
   * @throws NoTokenError, ChainAwayError
   */
  async holdingsOf(addresses: readonly Hex[], owner: string): Promise<Holding[]> {
    const { threshold } = this.terms;
    if (addresses.length === 0) return [];
    const decimals = await this.#decimals();
    const found = await Promise.all(
      addresses.map(async (address) => ({ address, units: await this.#balanceOf(address, owner) })),
    );
    return found
      .sort((a, b) => (a.units < b.units ? 1 : a.units > b.units ? -1 : 0))
      .map(({ address, units }) => ({
        address,
        holds: isAtLeast(units, decimals, threshold),
        balance: wholeTokens(units, decimals),
      }));
  }

  #balanceOf(address: Hex, owner: string): Promise<bigint> {
    const kept = this.#balances.get(address);
    if (kept) return kept(owner);
    const readBalance = cachedFor(BALANCE_CACHE_MS, (by: string) => this.#readBalance(address, by));
    setBounded(this.#balances, address, readBalance, MAX_KEPT);
    return readBalance(owner);
  }

  async #readBalance(address: Hex, owner: string): Promise<bigint> {
    const { token, node } = this.#configured();
    return node.onBehalfOf({ owner, isUrgent: true }).tokenBalance(token, address);
  }

  async #readDecimals(): Promise<number> {
    const { token, node } = this.#configured();
    const call = { address: token, abi: erc20Abi, functionName: 'decimals' } as const;
    const decimals = await node.onBehalfOf(PLATFORM).read((client) => client.readContract(call));
    if (decimals <= MAX_DECIMALS) return decimals;
    throw new ChainAwayError({
      cause: new RangeError(`The token has ${decimals} decimals: configure another token`),
    });
  }

  #configured(): { readonly token: Hex; readonly node: Chain } {
    if (!this.#token || !this.#node) throw new NoTokenError();
    return { token: this.#token.address, node: this.#node };
  }
}
