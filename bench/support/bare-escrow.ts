import { encodeDeployData, encodeFunctionData, erc20Abi, getCreate2Address, type Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { anvilKey } from '../../dev/chain/accounts.js';
import type { LocalChain } from '../../dev/chain/local-chain.js';
import { poll } from '../../dev/poll.js';
import { ChainNode } from '../../src/money/chain/chain-node.js';
import { escrowAbi, escrowCode } from '../../src/money/chain/payment-escrow.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { openCall, type SignedHold } from '../../src/money/sessions/escrow.js';
import {
  holdIdOf,
  holdTypedData,
  latestDeadline,
  newNonce,
} from '../../src/money/sessions/hold-authorization.js';
import type { PaymentCall } from '../../src/types/payment.js';
import { PaymentNode } from '../../src/money/payments/payment-node.js';
import { feeLimitsOf } from '../../src/money/chain/fee-limits.js';
import { signTransaction } from '../../src/money/payments/sign.js';

/** The deployer of contracts at predictable addresses. */
const CREATE2_DEPLOYER: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const NO_SALT: Hex = `0x${'0'.repeat(64)}`;

/** Gas limit that suffices to deploy a contract. */
const GAS = 20_000_000n;
const HOLD_SECONDS = 172_800n;

const MINED_TIMEOUT_MS = 60_000;
const CHECK_MS = 5;

/** Funded accounts of the chain. */
const WALLET = anvilKey(1);
const OPERATOR = anvilKey(2);

const ofEscrow = (to: Hex, data: Hex): PaymentCall => ({ to, data, value: 0n });

/** The baseline for opening and closing: an escrow of its own that is called directly. */
export class BareEscrow {
  readonly #chain: LocalChain;
  readonly #node: ChainNode;
  readonly #escrow: Hex;
  readonly #code: Hex;

  constructor(chain: LocalChain) {
    this.#chain = chain;
    this.#node = new ChainNode({ chainId: chain.chainId, url: chain.rpcUrl });
    this.#code = encodeDeployData({
      abi: escrowAbi,
      bytecode: escrowCode,
      args: [PATH_USD, OPERATOR.address, chain.treasury, HOLD_SECONDS],
    });
    const place = { from: CREATE2_DEPLOYER, salt: NO_SALT, bytecode: this.#code };
    this.#escrow = getCreate2Address(place);
  }

  /** Returns the wallet whose deposits are held. */
  get wallet(): Hex {
    return WALLET.address;
  }

  /**
   * Deploys the contract and deposits this many base units of the wallet in it and in the platform's
   * escrow.
   */
  async fill(amount: bigint): Promise<void> {
    const deployment = { ...ofEscrow(CREATE2_DEPLOYER, `${NO_SALT}${this.#code.slice(2)}`) };
    await this.#send(OPERATOR.privateKey, [deployment], GAS);
    for (const escrow of [this.#escrow, this.#chain.escrow]) {
      const approve = { abi: erc20Abi, functionName: 'approve' } as const;
      const deposit = { abi: escrowAbi, functionName: 'deposit' } as const;
      await this.#send(WALLET.privateKey, [
        ofEscrow(PATH_USD, encodeFunctionData({ ...approve, args: [escrow, amount] })),
        ofEscrow(escrow, encodeFunctionData({ ...deposit, args: [amount] })),
      ]);
    }
  }

  /** Signs a hold of this many base units in this escrow or in the platform's. */
  async sign(amount: bigint, where: 'here' | 'platform'): Promise<SignedHold> {
    const hold = { payer: WALLET.address, amount, nonce: newNonce(), deadline: latestDeadline() };
    const escrow = where === 'here' ? this.#escrow : this.#chain.escrow;
    const typedData = holdTypedData({ chainId: this.#chain.chainId, escrow }, hold);
    const signature = await privateKeyToAccount(WALLET.privateKey).signTypedData(typedData);
    return { ...hold, signature };
  }

  /** Opens the signed hold. */
  async open(signed: SignedHold): Promise<void> {
    const { calls, gas } = openCall(this.#escrow, signed);
    await this.#send(OPERATOR.privateKey, calls, gas);
  }

  /** Closes the hold and refunds the whole amount. */
  async close(signed: SignedHold): Promise<void> {
    const call = { abi: escrowAbi, functionName: 'close' } as const;
    const data = encodeFunctionData({ ...call, args: [holdIdOf(signed), 0n] });
    await this.#send(OPERATOR.privateKey, [ofEscrow(this.#escrow, data)]);
  }

  /** Sends a transaction and waits until it is in a block. */
  async #send(signer: Hex, calls: readonly PaymentCall[], gas?: bigint): Promise<void> {
    const node = new PaymentNode(this.#node);
    const { address } = privateKeyToAccount(signer);
    const [limit, nonce, fees] = await Promise.all([
      gas ?? node.gasOf(address, calls),
      node.nonceOf(address),
      node.fees(),
    ]);
    if (limit === undefined) throw new Error('The chain would revert the transaction');
    const { hash, raw } = await signTransaction(
      { signer, feePayer: undefined },
      {
        chainId: this.#chain.chainId,
        nonce,
        calls,
        gas: limit,
        maxFee: fees.base * 2n + fees.priority,
        priorityFee: fees.priority,
      },
      feeLimitsOf(this.#chain.chainId),
    );
    await node.broadcast(raw);
    const receipt = await poll(() => node.receiptOf(hash), {
      timeoutMs: MINED_TIMEOUT_MS,
      everyMs: CHECK_MS,
    });
    if (!receipt?.succeeded)
      throw new Error(`The transaction ${hash} was not mined or was reverted`);
  }
}
