import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import * as z from 'zod';
import type { Hex } from 'viem';
import { signTypedData } from 'viem/accounts';
import { furnish, partiesOf, type LocalChain } from '../../dev/chain/local-chain.js';
import { startAnvil } from '../../dev/chain/anvil.js';
import { keepRunning } from '../../dev/keep-running.js';
import { poll } from '../../dev/poll.js';
import { freePort } from '../../dev/ports.js';
import { readRecord } from '../../dev/processes/process.js';
import { ChainNode } from '../../src/money/chain/chain-node.js';
import { readHold } from '../../src/money/sessions/escrow.js';
import {
  holdTypedData,
  latestDeadline,
  newNonce,
  type Hold,
} from '../../src/money/sessions/hold-authorization.js';
import { PaymentNode } from '../../src/money/payments/payment-node.js';
import type { PaymentCall } from '../../src/types/payment.js';
import { feeLimitsOf } from '../../src/money/chain/fee-limits.js';
import { signTransaction } from '../../src/money/payments/sign.js';
import { rpcProxy, type RpcProxy } from '../support/chain/rpc-proxy.js';
import { killProcess } from './kills.js';

const CHAIN_ID = 4217;

/** Blocks until a transaction is final, counting its own: one block fewer than this is reorganised. */
export const CONFIRMATIONS = 3;
const REORGANISED = 3;

/** The hold time of payment sessions: longer than all rounds. */
const HOLD_MS = 48 * 60 * 60 * 1_000;

/** Milliseconds between two blocks while a transaction waits for confirmation. */
const BLOCK_MS = 250;

/** Transactions kept to be sent again if the chain loses them, as other nodes' pools would. */
const KEPT = 60;

const RPC_TIMEOUT_MS = 5_000;
const MINED_TIMEOUT_MS = 60_000;

const block = z.object({ number: z.string(), transactions: z.array(z.string()) });

interface Signed {
  readonly hash: Hex;
  readonly raw: Hex;
}

/** A chain to break, and the proxy between it and the platform. */
export class ChaosChain {
  /** The proxy through which the platform reaches the chain. */
  readonly proxy: RpcProxy;
  readonly local: LocalChain;
  /** The private key of the platform's own wallet. */
  readonly operatorKey: Hex;
  readonly #folder: string;
  readonly #node: ChainNode;
  /** Transactions that the platform has broadcast since `hold`. */
  #offered: Signed['raw'][] | undefined;
  #own: Signed[] = [];
  #nonce = 0n;
  #isHeld = false;
  #older: string | undefined;
  #paying: Promise<unknown> = Promise.resolve();

  private constructor(folder: string, local: LocalChain, operatorKey: Hex, proxy: RpcProxy) {
    this.operatorKey = operatorKey;
    this.#folder = folder;
    this.local = local;
    this.proxy = proxy;
    this.#node = new ChainNode({ chainId: CHAIN_ID, url: local.rpcUrl });
    this.mend();
  }

  static async start(
    folder: string,
    atEnd: (cleanup: () => Promise<void> | void) => void,
  ): Promise<ChaosChain> {
    const port = await freePort();
    const stateDir = path.join(folder, 'chain');
    const parties = partiesOf({ treasury: undefined, operator: undefined });
    const own: { chain?: ChaosChain } = {};
    const running = await keepRunning('chain', async () => {
      const older = own.chain?.takeOlder();
      if (older !== undefined) await copyFile(older, path.join(stateDir, 'state.json'));
      return startAnvil({
        stateDir,
        runDir: path.join(folder, 'run'),
        port,
        chainId: CHAIN_ID,
        keepsHistory: true,
      });
    });
    atEnd(() => running.stop());
    const place = { rpcUrl: running.rpcUrl, chainId: CHAIN_ID, dataDir: folder };
    const local = await furnish(place, parties, { holdMs: HOLD_MS });
    const proxy = await rpcProxy(local.rpcUrl);
    atEnd(() => proxy.close());
    const chain = new ChaosChain(folder, local, parties.operator.privateKey, proxy);
    own.chain = chain;
    const miner = setInterval(() => void chain.#mineIfAwaited().catch(() => undefined), BLOCK_MS);
    atEnd(() => clearInterval(miner));
    return chain;
  }

  livingPid = async (): Promise<number | undefined> =>
    (await readRecord(path.join(this.#folder, 'run'), 'chain'))?.pid;

  /** Returns a token balance in base units. */
  balanceOf = (token: Hex, address: Hex): Promise<bigint> =>
    this.#node.tokenBalance(token, address);

  /** Reports whether the transaction is in a block and not reverted. */
  async hasPaid(hash: Hex): Promise<boolean> {
    return (await this.#node.receipt(hash))?.succeeded === true;
  }

  blockOf = async (hash: Hex) => {
    const receipt = await this.#node.receipt(hash);
    return receipt && this.#node.block(receipt.blockNumber);
  };

  /** Sends calls from an account of the chain, one payment at a time, and waits for the block. */
  pay(calls: readonly PaymentCall[]): Promise<Hex> {
    const paid = this.#paying.catch(() => undefined).then(() => this.#pay(calls));
    this.#paying = paid;
    return paid;
  }

  /** The account that pays. */
  get payer(): Hex {
    return this.#account.address;
  }

  /** Signs a hold of this amount of the payer's deposit in the escrow. */
  sign(amount: bigint): { readonly hold: Hold; readonly signature: Promise<Hex> } {
    const { address: payer, privateKey } = this.#account;
    const hold = { payer, amount, nonce: newNonce(), deadline: latestDeadline() };
    const typedData = holdTypedData({ chainId: CHAIN_ID, escrow: this.local.escrow }, hold);
    return { hold, signature: signTypedData({ ...typedData, privateKey }) };
  }

  /** Returns a hold in the escrow, as of the latest block. */
  holdOf = (escrow: Hex, holdId: Hex) => readHold(this.#node, escrow, holdId);

  /** Sends transactions of dropped blocks again, as other nodes' pools would. */
  async sendAgain(): Promise<void> {
    const node = new PaymentNode(this.#node);
    for (const { hash, raw } of this.#own) {
      if (!(await node.knows(hash))) await node.broadcast(raw);
    }
  }

  /** Saves the chain's current state. */
  async keep(): Promise<void> {
    await copyFile(this.#keptFile, this.#olderFile);
  }

  /**
   * Kills the node, which restarts from the saved state. Payments of others since then are mined again
   * before any transaction of the platform: without them, final transactions would be reverted.
   */
  async goBack(): Promise<void> {
    this.proxy.fate = (method) => (method === 'eth_sendRawTransaction' ? 'lost' : undefined);
    this.#older = this.#olderFile;
    await killProcess('chain', this.livingPid);
    for (const { hash } of this.#own) await this.#mined(hash);
    this.mend();
  }

  /** Returns, once, the state file from which the node must start. */
  takeOlder(): string | undefined {
    const older = this.#older;
    this.#older = undefined;
    return older;
  }

  async reorganise(): Promise<void> {
    await this.#rpc('anvil_reorg', REORGANISED, []);
  }

  /** Stops mining. */
  async hold(): Promise<void> {
    this.#isHeld = true;
    this.#offered = [];
    await this.#rpc('evm_setAutomine', false);
  }

  /** Mines the transactions broadcast first and drops their replacements. */
  async letGo(): Promise<void> {
    const offered = this.#offered ?? [];
    this.#offered = undefined;
    await this.#rpc('anvil_dropAllTransactions');
    for (const raw of offered)
      await this.#rpc('eth_sendRawTransaction', raw).catch(() => undefined);
    await this.#rpc('evm_setAutomine', true);
    await this.#rpc('anvil_mine', '0x1');
    this.#isHeld = false;
  }

  /** Passes every request through to the node. */
  mend(): void {
    this.proxy.fate = (method, body) => {
      if (method === 'eth_sendRawTransaction' && this.#offered && this.#offered.length < KEPT) {
        const { params } = z.object({ params: z.tuple([z.string()]) }).parse(JSON.parse(body));
        this.#offered.push(params[0] as Hex); // as signed by the platform
      }
      return undefined;
    };
  }

  async #pay(calls: readonly PaymentCall[]): Promise<Hex> {
    const node = new PaymentNode(this.#node);
    const { privateKey } = this.#account;
    // The nonce is counted here, because transactions that the chain loses are sent again.
    const nonce = this.#nonce;
    const signed = await poll(
      async () => {
        try {
          const { base, priority } = await node.fees();
          return await signTransaction(
            { signer: privateKey, feePayer: undefined },
            {
              chainId: CHAIN_ID,
              nonce,
              calls,
              gas: 2_000_000n + 300_000n * BigInt(calls.length),
              maxFee: base * 3n + priority,
              priorityFee: priority,
            },
            feeLimitsOf(CHAIN_ID),
          );
        } catch {
          return undefined; // the node is restarting
        }
      },
      { timeoutMs: MINED_TIMEOUT_MS },
    );
    if (!signed) throw new Error('the chain is unavailable for too long');
    this.#own = [...this.#own, signed].slice(-KEPT);
    this.#nonce += 1n;
    await this.#mined(signed.hash);
    return signed.hash;
  }

  /** Waits until a transaction is mined, sending it again and again. */
  async #mined(hash: Hex): Promise<void> {
    const isMined = await poll(
      async () => {
        await this.sendAgain().catch(() => undefined);
        return (await this.hasPaid(hash).catch(() => false)) || undefined;
      },
      { timeoutMs: MINED_TIMEOUT_MS, everyMs: 100 },
    );
    if (!isMined) throw new Error(`${hash} was not mined in time`);
  }

  async #mineIfAwaited(): Promise<void> {
    if (this.#isHeld) return;
    const latest = block.parse(await this.#rpc('eth_getBlockByNumber', 'latest', false));
    for (let back = 0; back < CONFIRMATIONS; back++) {
      const number = BigInt(latest.number) - BigInt(back);
      if (number < 1n) return;
      const found = await this.#rpc('eth_getBlockByNumber', `0x${number.toString(16)}`, false);
      if (block.parse(found).transactions.length === 0) continue;
      await this.#rpc('anvil_mine', '0x1');
      return;
    }
  }

  async #rpc(method: string, ...params: unknown[]): Promise<unknown> {
    const answer = await fetch(this.local.rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      redirect: 'error',
      signal: AbortSignal.timeout(RPC_TIMEOUT_MS),
    });
    const { error, result } = (await answer.json()) as { error?: unknown; result?: unknown };
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  get #account() {
    const [, account] = this.local.accounts;
    if (!account) throw new TypeError('The chain must have a second account');
    return account;
  }

  get #keptFile(): string {
    return path.join(this.#folder, 'chain', 'state.kept.json');
  }

  get #olderFile(): string {
    return path.join(this.#folder, 'older.json');
  }
}
