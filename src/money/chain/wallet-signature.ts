import {
  encodeDeployData,
  erc6492SignatureValidatorAbi,
  erc6492SignatureValidatorByteCode,
  hashMessage,
  recoverAddress,
  type Hex,
} from 'viem';
import { CallRevertedError, type ChainNode } from './chain-node.js';

/** Length of a plain key signature in hex, with prefix: 65 bytes. */
const OF_A_KEY = 2 + 2 * 65;

/** The result of the validator code for a valid signature. */
const YES = /^0x0*1$/;

/** A text and its claimed wallet signature (EIP-191). */
export interface SignedText {
  /** The address in lower case. */
  readonly address: Hex;
  readonly text: string;
  readonly signature: Hex;
}

/**
 * Reports whether the wallet signed the text: by its key, which needs no chain, or as a contract,
 * deployed (ERC-1271) or not yet (ERC-6492).
 *
 * @throws ChainAwayError when a contract must be called while the chain is unavailable.
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
    return false; // the signature is no point of the curve
  }
}
