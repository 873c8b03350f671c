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

/** Milliseconds for a request and its answer. */
const CALL_TIMEOUT_MS = 5_000;

/** Milliseconds until an idle connection is closed. */
const IDLE_MS = 4_000;

/** Bytes of an answer at most; the receipt of a payment to a hundred recipients has some 150 KB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Concurrent requests of a process, concurrent requests of an owner, and an owner's waiting requests. */
const AT_ONCE = 32;
const OF_ONE_OWNER = 20;
const MAX_WAITING = 200;

/** Seconds that a caller waits before it retries while a node is unavailable. */
const RETRY_AFTER_S = 5;

/** Milliseconds for which a node's verified chain id stays valid. */
const CHAIN_KEPT_MS = 60_000;

/**
 * Error codes that nodes use only for a reverted or aborted call. Other nodes use -32000 both for this
 * and for their own faults; there only the returned data reveals a revert.
 */
const EXECUTION_ERRORS: readonly number[] = [3, -32_015];

/** Error codes for an invalid transaction: bad parameters, and geth's simulation errors. */
const INVALID_PARAMS = -32_602;
const isOfSimulation = (code: number): boolean => code <= -38_000 && code > -39_000;

const rpcAnswer = z.union([
  z.object({ error: z.object({ code: z.number(), data: z.unknown().optional() }) }),
  z.object({ result: z.unknown().refine((result) => result !== undefined) }),
]);

/** 503: no node is configured, or it does not respond, or it serves another chain. */
export class ChainAwayError extends UnavailableError {
  constructor(options?: ErrorOptions) {
    super('Chain unavailable', options, { retryAfter: RETRY_AFTER_S });
  }
}

/** The called contract reverted or aborted. */
export class CallRevertedError extends Error {
  override readonly name = 'CallRevertedError';
}

/** A node's error in answer to a request; not necessarily correct. */
export class NodeRefusalError extends Error {
  override readonly name = 'NodeRefusalError';

  /** True if the called contract reverted or aborted. */
  readonly isRevert: boolean;
  /** True if the request is at fault; otherwise the node itself may be. */
  readonly isOfQuestion: boolean;

  /**
   * @param code the JSON-RPC error code.
   * @param data the error's data.
   */
  constructor(code: number, data?: unknown) {
    super(`The node answered with the error ${code}`);
    this.isRevert = EXECUTION_ERRORS.includes(code) || hexData.safeParse(data).success;
    this.isOfQuestion = this.isRevert || code === INVALID_PARAMS || isOfSimulation(code);
  }
}

/** A call that executes at a block without changing state. */
export interface ChainCall {
  /** The contract; without it, `data` is a constructor, and its result is returned. */
  readonly to?: Hex;
  /** The sender, if it matters. */
  readonly from?: Hex;
  readonly data: Hex;
  /** Gas limit; the node's own by default. */
  readonly gas?: bigint;
  /** The block number; the latest by default. */
  readonly block?: number | undefined;
}

/** A node's chain and address. */
interface NodePlace {
  readonly chainId: number;
  /** Undefined makes the chain unavailable. */
  readonly url: string | undefined;
}

/** The owner that a node is queried for, and its urgency. */
export type NodeAsker = Pick<Asker, 'owner' | 'isUrgent'>;

/** The platform itself, without an owner. */
const PLATFORM: NodeAsker = { owner: '', isUrgent: true };

/** The connections to a node, shared by all its users. */
class NodeConnections {
  readonly #url: string | undefined;
  readonly #turns = new Turns(AT_ONCE, OF_ONE_OWNER);
  readonly #agent: http.Agent;
  /** Checks the node's chain id. Bypasses the queue, since all other requests wait for it. */
  readonly checkChain: () => Promise<void>;

  constructor({ chainId, url }: NodePlace) {
    this.#url = url;
    const { Agent } = url?.startsWith('https:') ? https : http;
    this.#agent = new Agent({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: AT_ONCE });
    this.checkChain = keptFor(CHAIN_KEPT_MS, async () => {
      const id = await ofNode(this.#ask('eth_chainId', [], quantity));
      if (id === chainId) return;
      throw new ChainAwayError({ cause: new Error('The node serves another chain') });
    });
  }

  /** Sends a request in the owner's turn. */
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

/** A JSON-RPC node of a chain. */
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

  /** Returns the same node for an owner, so that an owner's requests never hold up those of others. */
  askedFor(asker: NodeAsker): ChainNode {
    return new ChainNode(this.#place, this.#connections, asker);
  }

  /**
   * Runs a call at a block.
   *
   * @throws CallRevertedError, ChainAwayError
   */
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
   * Sends a request that has no method of its own here.
   *
   * @throws NodeRefusalError, ChainAwayError. The request may have taken effect anyway.
   */
  async ask<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    await this.#connections.checkChain();
    return this.#ask(method, params, answer);
  }

  /**
   * Returns an address's balance of a token in base units, as of the latest block.
   *
   * @throws ChainAwayError also if the token does not exist, since the caller can fix neither.
   */
  async tokenBalance(token: Hex, owner: Hex): Promise<bigint> {
    const call = { abi: erc20Abi, functionName: 'balanceOf' } as const;
    return this.view(token, encodeFunctionData({ ...call, args: [owner] }), (data) =>
      decodeFunctionResult({ ...call, data }),
    );
  }

  /**
   * Returns the answer of a known contract, as of the latest block or a given one.
   *
   * @throws ChainAwayError also if the contract is missing or a different one.
   */
  async view<T>(contract: Hex, data: Hex, decode: (answer: Hex) => T, block?: number): Promise<T> {
    try {
      return decode(await this.call({ to: contract, data, block }));
    } catch (error) {
      throw error instanceof UnavailableError ? error : new ChainAwayError({ cause: error });
    }
  }

  /** Returns a transaction's receipt; undefined if it is unknown or not in a block. @throws ChainAwayError */
  async receipt(hash: Hex): Promise<Receipt | undefined> {
    await this.#connections.checkChain();
    const receipt = await this.#read('eth_getTransactionReceipt', [hash], receiptAnswer);
    if (receipt && receipt.hash !== hash.toLowerCase()) {
      throw new ChainAwayError({
        cause: new Error('The node sent the receipt of another transaction'),
      });
    }
    return receipt ?? undefined;
  }

  /**
   * Reports whether an address has code: a contract, or code set by the key's owner (EIP-7702). @throws
   * ChainAwayError
   */
  async hasCode(address: Hex): Promise<boolean> {
    await this.#connections.checkChain();
    return (await this.#read('eth_getCode', [address, 'latest'], hexData)) !== '0x';
  }

  /** Returns the block of a number; undefined if it does not exist yet. @throws ChainAwayError */
  async block(number: number): Promise<Block | undefined> {
    await this.#connections.checkChain();
    const asked = [`0x${number.toString(16)}`, false];
    return (await this.#read('eth_getBlockByNumber', asked, blockAnswer)) ?? undefined;
  }

  /** Returns the number of the latest block. @throws ChainAwayError */
  async blockNumber(): Promise<number> {
    await this.#connections.checkChain();
    return this.#read('eth_blockNumber', [], quantity);
  }

  /** Sends a request that runs no contract, so an error in the answer is the node's fault. */
  #read<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    return ofNode(this.#ask(method, params, answer));
  }

  #ask<T>(method: string, params: readonly unknown[], answer: z.ZodType<T>): Promise<T> {
    return this.#connections.ask(this.#asker, method, params, answer);
  }
}

/** Awaits an answer and attributes its errors to the node. */
async function ofNode<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof NodeRefusalError ? new ChainAwayError({ cause: error }) : error;
  }
}

/** URL and connections of a node. */
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

const noAnswer = () => new ChainAwayError({ cause: new Error("The node's answer is invalid") });

/** Reads the body also under an error status, since some nodes report JSON-RPC errors that way. */
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
