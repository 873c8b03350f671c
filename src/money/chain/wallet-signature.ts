import {
  encodeDeployData,
  erc6492SignatureValidatorAbi,
  erc6492SignatureValidatorByteCode,
  hashMessage,
  recoverAddress,
  type Hex,
} from 'viem';
import { CallRevertedError, type ChainNode } from './chain-node.js';

/** Hex digits of a signature that a key alone makes: 65 bytes. */
const OF_A_KEY = 2 + 2 * 65;

/** What the code that is asked returns for a good signature. */
const YES = /^0x0*1$/;

/** A text that a wallet is said to have signed (EIP-191). */
export interface SignedText {
  /** In lower case. */
  readonly address: Hex;
  readonly text: string;
  readonly signature: Hex;
}

/**
 * Whether the wallet has signed it: by its key, which needs no chain, or as a contract, there (ERC-1271)
 * or still to be made (ERC-6492).
 *
 * @throws ChainAwayError when a contract would have to be asked.
 */
export async function isSignedByWallet(
  signed: SignedText,
  chain: ChainNode | undefined,
): Promise<boolean> {
  const hash = hashMessage(signed.text);
  if (await isOfItsKey(hash, signed)) return true;
  if (!chain) return false;
  const data = encodeDeployData({
    abi: erc6492SignatureValidatorAbi,
    args: [signed.address, hash, signed.signature],
    bytecode: erc6492SignatureValidatorByteCode,
  });
  try {
    return YES.test(await chain.call({ data }));
  } catch (error) {
    if (error instanceof CallRevertedError) return false;
    throw error;
  }
}

async function isOfItsKey(hash: Hex, { address, signature }: SignedText): Promise<boolean> {
  if (signature.length !== OF_A_KEY) return false;
  try {
    return (await recoverAddress({ hash, signature })).toLowerCase() === address;
  } catch {
    return false; // no point of the curve
  }
}
