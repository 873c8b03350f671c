import { keccak256, type Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { Transaction } from 'viem/tempo';
import type { FeeLimits } from '../chain/fee-limits.js';
import { PATH_USD } from '../chain/tempo.js';
import { isTempo } from './chains.js';
import type { PaymentCall } from '../../types/payment.js';
import type { OpenedKeys } from './signing-keys.js';

export interface UnsignedTransaction {
  readonly chainId: number;
  readonly nonce: bigint;
  readonly calls: readonly PaymentCall[];
  readonly gas: bigint;
  readonly maxFee: bigint;
  readonly priorityFee: bigint;
}

export interface SignedTransaction {
  readonly raw: Hex;
  readonly hash: Hex;
}

/** A transaction would cost more than its limit, so it is not signed. */
export class FeeTooHighError extends Error {
  override readonly name = 'FeeTooHighError';

  constructor(
    /** The limit that was exceeded. */
    readonly limit: keyof FeeLimits,
    /** The rejected fee, in the chain's fee unit. */
    readonly fee: bigint,
  ) {
    super(`The fee ${fee} is above the maximum of a ${limit}: wait, or raise the maximum`);
  }
}

/**
 * Signs a transaction: a Tempo transaction on the platform's own chain, else an ordinary one, whose fee
 * only the signer can pay. @throws FeeTooHighError: neither a node nor a busy chain decides the price.
 */
export async function signTransaction(
  { feePayer, signer }: OpenedKeys,
  { calls, chainId, gas, maxFee, nonce, priorityFee }: UnsignedTransaction,
  limits: FeeLimits,
): Promise<SignedTransaction> {
  if (maxFee > limits.unit) throw new FeeTooHighError('unit', maxFee);
  if (gas * maxFee > limits.transaction) throw new FeeTooHighError('transaction', gas * maxFee);
  const account = privateKeyToAccount(signer);
  const common = {
    chainId,
    nonce: Number(nonce),
    gas,
    maxFeePerGas: maxFee,
    maxPriorityFeePerGas: priorityFee,
  };
  const [call] = calls;
  if (!call) throw new RangeError('A transaction must have a call: add at least one');
  const raw = isTempo(chainId)
    ? await account.signTransaction(
        {
          ...common,
          type: 'tempo',
          calls: [...calls],
          feeToken: PATH_USD,
          nonceKey: 0n,
          ...(feePayer && { feePayer: privateKeyToAccount(feePayer) }),
        },
        { serializer: Transaction.serialize },
      )
    : await account.signTransaction({ ...common, type: 'eip1559', ...call });
  return { raw, hash: keccak256(raw) };
}
