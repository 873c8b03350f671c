import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { signTypedData } from 'viem/accounts';
import type { Receipt } from '../../src/money/chain/answers.js';
import { ChainNode } from '../../src/money/chain/chain-node.js';
import {
  holdTypedData,
  type Hold,
  type HoldDomain,
} from '../../src/money/sessions/hold-authorization.js';
import { PaymentNode } from '../../src/money/payments/payment-node.js';
import type { PaymentCall } from '../../src/types/payment.js';
import { feeLimitsOf } from '../../src/money/chain/fee-limits.js';
import { signTransaction } from '../../src/money/payments/sign.js';
import type { LocalChain } from '../chain/local-chain.js';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { say } from '../report.js';
import type { Terminal } from './terminal.js';

const MINED_TIMEOUT_MS = 60_000;

/** An account of the chain with money, whose key is public. */
export class Payer {
  readonly address: Hex;
  readonly node: ChainNode;
  readonly #privateKey: Hex;
  readonly #chain: LocalChain;
  readonly #terminal: Terminal;

  constructor(chain: LocalChain, account: LocalChain['accounts'][number], terminal: Terminal) {
    this.#chain = chain;
    this.#terminal = terminal;
    this.address = account.address;
    this.#privateKey = account.privateKey;
    this.node = new ChainNode({ chainId: chain.chainId, url: chain.rpcUrl });
  }

  /** Signs that the given amount of the account's deposit may be held; sends nothing. */
  sign(domain: HoldDomain, hold: Hold): Promise<Hex> {
    return signTypedData({ ...holdTypedData(domain, hold), privateKey: this.#privateKey });
  }

  /** Sends calls in one transaction, and waits for its block. @throws StartFailure */
  async send(calls: readonly PaymentCall[]): Promise<Receipt> {
    const node = new PaymentNode(this.node);
    const [gas, nonce, fees] = await Promise.all([
      node.gasOf(this.address, calls),
      node.nonceOf(this.address),
      node.fees(),
    ]);
    if (gas === undefined) {
      throw new StartFailure(
        `The transaction would revert: check that ${this.address} has enough money left.`,
      );
    }
    const { raw, hash } = await signTransaction(
      { signer: this.#privateKey, feePayer: undefined },
      {
        chainId: this.#chain.chainId,
        nonce,
        calls,
        gas,
        maxFee: fees.base * 2n + fees.priority,
        priorityFee: fees.priority,
      },
      feeLimitsOf(this.#chain.chainId),
    );
    const body = { jsonrpc: '2.0', id: 1, method: 'eth_sendRawTransaction', params: [raw] };
    await this.#terminal.ask({ method: 'POST', url: this.#chain.rpcUrl, body });
    const receipt = await poll(() => this.node.receipt(hash), { timeoutMs: MINED_TIMEOUT_MS });
    if (!receipt?.succeeded) throw new StartFailure(`The transaction ${hash} failed.`);
    say(`transaction ${hash} is in block ${receipt.blockNumber}`);
    return receipt;
  }
}

/** Returns the call that sends base units of a token. */
export const transfer = (token: Hex, to: Hex, amount: bigint): PaymentCall => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
  value: 0n,
});
