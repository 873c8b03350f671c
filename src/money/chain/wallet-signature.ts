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
 * @param gas the most gas that a contract may use; the node's own limit by default.
 * @throws ChainAwayError when a contract must be called while the chain is unavailable.
 */
export async function isSignedByWallet(
  signed: SignedText,
  chain: ChainNode | undefined,
  gas?: bigint,
): Promise<boolean> {
  if (await isSignedByKey(signed)) return true;
  if (!chain) return false;
  const hash = hashMessage(signed.text);
  const data = encodeDeployData({
    abi: erc6492SignatureValidatorAbi,
    args: [signed.address, hash, signed.signature],
    bytecode: erc6492SignatureValidatorByteCode,
  });
  try {
    return YES.test(await chain.call({ data, gas }));
  } catch (error) {
    if (error instanceof CallRevertedError) return false;
    throw error;
  }
}

/** Reports whether the key of the address signed the text, which needs no chain. */
export async function isSignedByKey({ address, signature, text }: SignedText): Promise<boolean> {
  return (await recoveredSigner(text, signature)) === address;
}

/** Returns the address whose key signed the text, in lower case; undefined if the signature is of no key. */
export async function recoveredSigner(text: string, signature: Hex): Promise<Hex | undefined> {
  if (!isOfKeyLength(signature)) return undefined;
  try {
    const signer = await recoverAddress({ hash: hashMessage(text), signature });
    return signer.toLowerCase() as Hex;
  } catch {
    return undefined; // the signature is no point of the curve
  }
}

/** Reports whether a signature has the length of a plain key's. */
export const isOfKeyLength = (signature: Hex): boolean => signature.length === OF_A_KEY;
