import http from 'node:http';
import https from 'node:https';
import { decodeFunctionResult, encodeFunctionData, erc20Abi, type Hex } from 'viem';
import * as z from 'zod';
import { UnavailableError } from '../../lib/errors.js';
import { strictCall, textOf, type StrictCall } from '../../platform/http/strict-call.js';
import { tryParseJson } from '../../lib/json.js';
import { keptFor } from '../../lib/kept-for.js';
import { Turns, type Asker } from '../../lib/turns.js';
import { blockAnswer, hexData, quantity, receiptAnswer } from './answers.js';
import type { Block, Receipt } from './answers.js';

/** For one question and its answer, in milliseconds. */
const CALL_TIMEOUT_MS = 5_000;

/** For how long a connection is kept that nothing is asked on, in milliseconds. */
const IDLE_MS = 4_000;

/** The receipt of a payment to a hundred people has some 150 KB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Questions of one process at a time, those of one owner, and how many of theirs may wait for their turn. */
const AT_ONCE = 32;
const OF_ONE_OWNER = 20;
const MAX_WAITING = 200;

/** Seconds after which whoever was refused for a node that is away is to ask again. */
const RETRY_AFTER_S = 5;

/** For how long a node is taken to be of the chain that it was last found to be of. */
const CHAIN_KEPT_MS = 60_000;

/**
 * What nodes say of nothing but a call that the called contract has refused, or that has broken off. Others say
 * -32000 of that, as of all that ails themselves: there only what the contract gave back tells.
 */
const EXECUTION_ERRORS: readonly number[] = [3, -32_015];

/** What they say of what can be no transaction as it stands: parameters, and simulations as geth has them. */
const INVALID_PARAMS = -32_602;
const isOfSimulation = (code: number): boolean => code <= -38_000 && code > -39_000;

const rpcAnswer = z.union([
  z.object({ error: z.object({ code: z.number(), data: z.unknown().optional() }) }),
  z.object({ result: z.unknown().refine((result) => result !== undefined) }),
]);

/** 503: no node is configured, or it does not answer as one of this chain. */
export class ChainAwayError extends UnavailableError {
  constructor(options?: ErrorOptions) {
    super('Chain unavailable', options, { retryAfter: RETRY_AFTER_S });
  }
}

/** The contract that was called has refused, or broke off. */
export class CallRevertedError extends Error {
  override readonly name = 'CallRevertedError';
}

/** The node answers that it will not have what it was asked for, which need not be so. */
export class NodeRefusalError extends Error {
  override readonly name = 'NodeRefusalError';

  /** The contract that was called has refused, or broke off. */
  readonly isRevert: boolean;
  /** It is said of what was asked for; otherwise the node may be what ails. */
  readonly isOfQuestion: boolean;

  /**
   * @param code the one of JSON-RPC.
   * @param data what came with it.
   */
  constructor(code: number, data?: unknown) {
    super(`The node answered with the error ${code}`);
    this.isRevert = EXECUTION_ERRORS.includes(code) || hexData.safeParse(data).success;
    this.isOfQuestion = this.isRevert || code === INVALID_PARAMS || isOfSimulation(code);
  }
}

/** Code that is run as of a block, and leaves nothing behind. */
export interface ChainCall {
  /** The contract; without one `data` is a constructor, whose result counts. */
  readonly to?: Hex;
  /** Who asks, where that matters. */
  readonly from?: Hex;
  readonly data: Hex;
  /** Most that it may take; as much as the node lets calls have unless said. */
  readonly gas?: bigint;
  /** The number of the block; the latest unless said. */
  readonly block?: number | undefined;
}

/** Where a node is. */
interface NodePlace {
  readonly chainId: number;
  /** Without one, the chain is away. */
  readonly url: string | undefined;
}

/** For whom a node is asked. */
export type NodeAsker = Pick<Asker, 'owner' | 'isUrgent'>;

/** Nobody's in particular. */
const PLATFORM: NodeAsker = { owner: '', isUrgent: true };

/** The connections to a node, which those share who ask it. */
class NodeConnections {
  readonly #url: string | undefined;
  readonly #turns = new Turns(AT_ONCE, OF_ONE_OWNER);
  readonly #agent: http.Agent;
  /** Waits for nobody's turn: all others wait for it. */
  readonly checkChain: () => Promise<void>;

  constructor({ chainId, url }: NodePlace) {
    this.#url = url;
    const { Agent } = url?.startsWith('https:') ? https : http;
    this.#agent = new Agent({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: AT_ONCE });
    this.checkChain = keptFor(CHAIN_KEPT_MS, async () => {
      const id = await ofNode(this.#ask('eth_chainId', [], quantity));
      if (id === chainId) return;
      throw new ChainAwayError({ cause: new Error('The node is of another chain') });
    });
  }

  /** Asks in the turn of the owner. */
  async ask<T>(
    asker: NodeAsker,
    method: string,
    params: readonly unknown[],
    answer: z.ZodType<T>,
  ): Promise<T> {
    if (this.#turns.waitingOf(asker.owner) >= MAX_WAITING) throw new ChainAwayError();
    return this.#turns.run(asker, () => this.#ask(method, params, answer));
  }

  #ask<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    if (this.#url === undefined) return Promise.reject(new ChainAwayError());
    const question = { jsonrpc: '2.0', id: 1, method, params };
    return ask({ url: this.#url, agent: this.#agent }, question, answer);
  }
}

/** A node of one chain, by JSON-RPC. */
export class ChainNode {
  readonly chainId: number;
  readonly #place: NodePlace;
  readonly #connections: NodeConnections;
  readonly #asker: NodeAsker;

  /** @param connections, asker see `askedFor`. */
  constructor(place: NodePlace, connections = new NodeConnections(place), asker = PLATFORM) {
    this.chainId = place.chainId;
    this.#place = place;
    this.#connections = connections;
    this.#asker = asker;
  }

  /** The same node, asked for somebody: however many questions one owner has, those of others are not held up. */
  askedFor(asker: NodeAsker): ChainNode {
    return new ChainNode(this.#place, this.#connections, asker);
  }

  /** @throws CallRevertedError, ChainAwayError */
  async call({ block, data, from, gas, to }: ChainCall): Promise<Hex> {
    try {
      const at = block === undefined ? 'latest' : `0x${block.toString(16)}`;
      return await this.ask(
        'eth_call',
        [
          {
            ...(from && { from }),
            ...(to && { to }),
            ...(gas && { gas: `0x${gas.toString(16)}` }),
            data,
          },
          at,
        ],
        hexData,
      );
    } catch (error) {
      if (!(error instanceof NodeRefusalError)) throw error;
      if (error.isRevert) throw new CallRevertedError(error.message);
      throw new ChainAwayError({ cause: error });
    }
  }

  /**
   * Asks what has no method of its own here.
   *
   * @throws NodeRefusalError, ChainAwayError. It may have happened all the same.
   */
  async ask<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    await this.#connections.checkChain();
    return this.#ask(method, params, answer);
  }

  /**
   * The base units of a token that an address has, as of the latest block.
   *
   * @throws ChainAwayError also where there is no such token: whoever asks can change neither.
   */
  async tokenBalance(token: Hex, owner: Hex): Promise<bigint> {
    const call = { abi: erc20Abi, functionName: 'balanceOf' } as const;
    return this.view(token, encodeFunctionData({ ...call, args: [owner] }), (data) =>
      decodeFunctionResult({ ...call, data }),
    );
  }

  /**
   * What a contract that we know answers, as of the latest block or the one of a number.
   *
   * @throws ChainAwayError also where the contract is not there, or is another one.
   */
  async view<T>(contract: Hex, data: Hex, decode: (answer: Hex) => T, block?: number): Promise<T> {
    try {
      return decode(await this.call({ to: contract, data, block }));
    } catch (error) {
      throw error instanceof UnavailableError ? error : new ChainAwayError({ cause: error });
    }
  }

  /** Undefined for a transaction that is not in a block, or not known. @throws ChainAwayError */
  async receipt(hash: Hex): Promise<Receipt | undefined> {
    await this.#connections.checkChain();
    const receipt = await this.#read('eth_getTransactionReceipt', [hash], receiptAnswer);
    if (receipt && receipt.hash !== hash.toLowerCase()) {
      throw new ChainAwayError({ cause: new Error('The node sent another receipt') });
    }
    return receipt ?? undefined;
  }

  /** Whether an address has code: a contract, or what the owner of a key has put there (EIP-7702). @throws ChainAwayError */
  async hasCode(address: Hex): Promise<boolean> {
    await this.#connections.checkChain();
    return (await this.#read('eth_getCode', [address, 'latest'], hexData)) !== '0x';
  }

  /** The block of a number; undefined while there is none. @throws ChainAwayError */
  async block(number: number): Promise<Block | undefined> {
    await this.#connections.checkChain();
    const asked = [`0x${number.toString(16)}`, false];
    return (await this.#read('eth_getBlockByNumber', asked, blockAnswer)) ?? undefined;
  }

  /** The number of the latest block. @throws ChainAwayError */
  async blockNumber(): Promise<number> {
    await this.#connections.checkChain();
    return this.#read('eth_blockNumber', [], quantity);
  }

  /** A question that runs no contract: an error in answer to it is the node's. */
  #read<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    return ofNode(this.#ask(method, params, answer));
  }

  #ask<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    return this.#connections.ask(this.#asker, method, params, answer);
  }
}

/** An answer of which an error is the node's. */
async function ofNode<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof NodeRefusalError ? new ChainAwayError({ cause: error }) : error;
  }
}

/** How a node is reached. */
type Reached = Required<Pick<StrictCall, 'url' | 'agent'>>;

async function ask<T>(node: Reached, question: object, wanted: z.ZodType<T>): Promise<T> {
  const text = await answerTo(node, question).catch((cause: unknown) => {
    throw new ChainAwayError({ cause });
  });
  const answer = rpcAnswer.safeParse(tryParseJson(text ?? ''));
  if (!answer.success) throw noAnswer();
  if ('error' in answer.data) {
    const { code, data } = answer.data.error;
    throw new NodeRefusalError(code, data);
  }
  const result = wanted.safeParse(answer.data.result);
  if (!result.success) throw noAnswer();
  return result.data;
}

const noAnswer = () => new ChainAwayError({ cause: new Error('The node sent what is no answer') });

/** Also where the status says that it is an error: some nodes do. */
async function answerTo(node: Reached, question: object): Promise<string | undefined> {
  const { body } = await strictCall({
    ...node,
    body: question,
    accept: 'application/json',
    maxBytes: MAX_ANSWER_BYTES,
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  return body && textOf(body);
}
