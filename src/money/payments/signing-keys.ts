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

/** Private keys by which a transaction is signed. */
export interface OpenedKeys {
  readonly signer: Hex;
  /** Of who pays the fee where the chain lets somebody else do so; undefined: who signs. */
  readonly feePayer: Hex | undefined;
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

  /**
   * Opens the key of an address. What other wallets pay costs them no fee: that is the operator's.
   *
   * @throws KeyMissingError
   */
  async open(address: Hex): Promise<OpenedKeys> {
    const { address: operator, privateKey } = this.#operator ?? {};
    const signer = address === operator ? privateKey : await this.#kept(address);
    if (signer === undefined) throw new KeyMissingError(address);
    return { signer, feePayer: address === operator ? undefined : privateKey };
  }

  /** The platform's own wallet; undefined where nobody signs for it. */
  get operator(): Hex | undefined {
    const { address, privateKey } = this.#operator ?? {};
    return privateKey === undefined ? undefined : address;
  }

  /** Whose the fees are of what an address pays, where the chain lets somebody else pay them. */
  feePayerOf(address: Hex): Hex {
    const { address: operator = address, privateKey } = this.#operator ?? {};
    return privateKey === undefined ? address : operator;
  }
}
