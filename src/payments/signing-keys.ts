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
  readonly privateKey: Hex;
}

/** Keys of those who pay, opened for the moment in which they sign. */
export class SigningKeys {
  readonly #operator: Operator | undefined;

  constructor(operator: Operator | undefined) {
    this.#operator = operator;
  }

  /** @throws KeyMissingError */
  async open(address: Hex): Promise<Hex> {
    if (address === this.#operator?.address) return Promise.resolve(this.#operator.privateKey);
    throw new KeyMissingError(address);
  }
}
