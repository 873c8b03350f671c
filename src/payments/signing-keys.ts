import type { Hex } from 'viem';

/** No key of the address is kept here: nothing can be signed for it. */
export class KeyMissingError extends Error {
  override readonly name = 'KeyMissingError';

  constructor(address: Hex) {
    super(`No key of ${address} is kept here`);
  }
}

/** The platform's own wallet. */
export interface Operator {
  /** In lower case. */
  readonly address: Hex;
  /** Undefined in every process but the one that signs. */
  readonly privateKey?: Hex;
}

/** Finds the key of a wallet that is kept here; undefined where there is none. */
export type KeptKeys = (address: Hex) => Promise<Hex | undefined>;

/** Keys of those who pay, opened for the moment in which they sign. */
export class SigningKeys {
  readonly #operator: Operator | undefined;
  readonly #kept: KeptKeys;

  constructor(operator: Operator | undefined, kept: KeptKeys) {
    this.#operator = operator;
    this.#kept = kept;
  }

  /** @throws KeyMissingError */
  async open(address: Hex): Promise<Hex> {
    const { address: operator, privateKey } = this.#operator ?? {};
    const key = address === operator ? privateKey : await this.#kept(address);
    if (key === undefined) throw new KeyMissingError(address);
    return key;
  }
}
