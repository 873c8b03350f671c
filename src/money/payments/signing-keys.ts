import type { Hex } from 'viem';

/** The platform has no key for the address, so it cannot sign. */
export class KeyMissingError extends Error {
  override readonly name = 'KeyMissingError';

  constructor(address: Hex) {
    super(`No key of ${address} is stored: import the wallet`);
  }
}

/** The platform's own wallet. */
export interface Operator {
  /** In lower case. */
  readonly address: Hex;
  /** Undefined in every process except the one that signs. */
  readonly privateKey?: Hex;
}

/** Private keys that sign a transaction. */
export interface OpenedKeys {
  readonly signer: Hex;
  /** Key of the fee payer, if the chain supports one; undefined: the signer pays. */
  readonly feePayer: Hex | undefined;
}

/** Finds the key of a wallet that the platform stores; undefined if it stores none. */
export type KeptKeys = (address: Hex) => Promise<Hex | undefined>;

/** Keys of payers, decrypted only to sign. */
export class SigningKeys {
  readonly #operator: Operator | undefined;
  readonly #kept: KeptKeys;

  constructor(operator: Operator | undefined, kept: KeptKeys) {
    this.#operator = operator;
    this.#kept = kept;
  }

  /**
   * Decrypts the key of an address. The operator pays the fees of all other wallets.
   *
   * @throws KeyMissingError
   */
  async open(address: Hex): Promise<OpenedKeys> {
    const { address: operator, privateKey } = this.#operator ?? {};
    const signer = address === operator ? privateKey : await this.#kept(address);
    if (signer === undefined) throw new KeyMissingError(address);
    return { signer, feePayer: address === operator ? undefined : privateKey };
  }

  /** The platform's own wallet; undefined if its key is not configured here. */
  get operator(): Hex | undefined {
    const { address, privateKey } = this.#operator ?? {};
    return privateKey === undefined ? undefined : address;
  }

  /** Returns the address that pays the fees for an address, on chains that support fee payers. */
  feePayerOf(address: Hex): Hex {
    const { address: operator = address, privateKey } = this.#operator ?? {};
    return privateKey === undefined ? address : operator;
  }
}
