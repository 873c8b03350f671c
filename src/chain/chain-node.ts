import http from 'node:http';
import https from 'node:https';
import {
  BaseError,
  BlockNotFoundError,
  createPublicClient,
  custom,
  erc20Abi,
  formatTransactionReceipt,
  type CallParameters,
  type EIP1193Parameters,
  type Hex,
  type PublicClient,
} from 'viem';
import * as z from 'zod';
import { UnavailableError } from '../errors.js';
import { strictCall, textOf, type StrictCall } from '../http/strict-call.js';
import { tryParseJson } from '../json.js';
import { keptFor } from '../kept-for.js';
import { Turns, type Asker } from '../turns.js';
import { ANSWERS, hexData, type Block, type Receipt } from './answers.js';

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

/** Code that is run as of the latest block; without `to`, `data` is a constructor, whose result counts. */
export type ChainCall = Pick<CallParameters, 'account' | 'data' | 'gas' | 'to'>;

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

/** A request to a node by viem's client. */
export type NodeRequest<T> = (client: PublicClient) => Promise<T>;

type RpcRequest = Pick<EIP1193Parameters, 'method' | 'params'>;

/** The connections to a node, which those share who ask it. */
class NodeConnections {
  readonly #url: string | undefined;
  readonly #turns = new Turns(AT_ONCE, OF_ONE_OWNER);
  readonly #agent: http.Agent;
  /** Waits for nobody's turn: all others wait for it. */
  readonly #checkChain: () => Promise<void>;

  constructor({ chainId, url }: NodePlace) {
    this.#url = url;
    const { Agent } = url?.startsWith('https:') ? https : http;
    this.#agent = new Agent({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: AT_ONCE });
    this.#checkChain = keptFor(CHAIN_KEPT_MS, async () => {
      const id = await this.#ask({ method: 'eth_chainId' }).catch(throwAway);
      if (Number(id) === chainId) return;
      throw new ChainAwayError({ cause: new Error('The node is of another chain') });
    });
  }

  /**
   * Returns a client whose requests wait for the owner's turn. It retries nothing, caches nothing and follows no
   * contract to an address outside the chain (ERC-3668).
   */
  clientOf(asker: NodeAsker): PublicClient {
    const request = async (rpc: RpcRequest) => {
      await this.#checkChain();
      if (this.#turns.waitingOf(asker.owner) >= MAX_WAITING) throw new ChainAwayError();
      return this.#turns.run(asker, () => this.#ask(rpc));
    };
    const transport = custom({ request }, { retryCount: 0 });
    return createPublicClient({ transport, cacheTime: 0, ccipRead: false });
  }

  #ask(rpc: RpcRequest): Promise<unknown> {
    if (this.#url === undefined) return Promise.reject(new ChainAwayError());
    return ask({ url: this.#url, agent: this.#agent }, rpc);
  }
}

/** A node of one chain. */
export class ChainNode {
  readonly chainId: number;
  readonly #place: NodePlace;
  readonly #connections: NodeConnections;
  readonly #client: PublicClient;

  /** @param connections, asker see `askedFor`. */
  constructor(place: NodePlace, connections = new NodeConnections(place), asker = PLATFORM) {
    this.chainId = place.chainId;
    this.#place = place;
    this.#connections = connections;
    this.#client = connections.clientOf(asker);
  }

  /** The same node, asked for somebody: however many questions one owner has, those of others are not held up. */
  askedFor(asker: NodeAsker): ChainNode {
    return new ChainNode(this.#place, this.#connections, asker);
  }

  /** @throws NodeRefusalError, ChainAwayError. It may have happened all the same. */
  async ask<T>(request: NodeRequest<T>): Promise<T> {
    try {
      return await request(this.#client);
    } catch (error) {
      throw error instanceof BaseError ? ownErrorOf(error) : error;
    }
  }

  /**
   * Reads what any node of the chain answers.
   *
   * @throws ChainAwayError also where a contract is not there, or is another one: whoever asks can change neither.
   */
  read<T>(request: NodeRequest<T>): Promise<T> {
    return this.ask(request).catch(throwAway);
  }

  /** @throws CallRevertedError, ChainAwayError */
  async call(call: ChainCall): Promise<Hex> {
    try {
      const { data = '0x' } = await this.ask((client) => client.call(call));
      return data;
    } catch (error) {
      if (error instanceof NodeRefusalError && error.isRevert)
        throw new CallRevertedError(error.message);
      return throwAway(error);
    }
  }

  /** The base units of a token that an address has, as of the latest block. @throws ChainAwayError */
  async tokenBalance(token: Hex, owner: Hex): Promise<bigint> {
    const call = { abi: erc20Abi, functionName: 'balanceOf', args: [owner] } as const;
    return this.read((client) => client.readContract({ ...call, address: token }));
  }

  /** Undefined for a transaction that is not in a block, or not known. @throws ChainAwayError */
  async receipt(hash: Hex): Promise<Receipt | undefined> {
    const found = await this.read((client) =>
      client.request({ method: 'eth_getTransactionReceipt', params: [hash] }),
    );
    if (!found) return undefined;
    const { blockHash, blockNumber, logs, status, transactionHash } =
      formatTransactionReceipt(found);
    if (transactionHash !== hash.toLowerCase()) {
      throw new ChainAwayError({ cause: new Error('The node sent another receipt') });
    }
    const succeeded = status === 'success';
    return { hash: transactionHash, succeeded, blockHash, blockNumber: Number(blockNumber), logs };
  }

  /** Whether an address has code: a contract, or what the owner of a key has put there (EIP-7702). @throws ChainAwayError */
  async hasCode(address: Hex): Promise<boolean> {
    return (await this.read((client) => client.getCode({ address }))) !== undefined;
  }

  /** The block of a number; undefined while there is none. @throws ChainAwayError */
  async block(number: number): Promise<Block | undefined> {
    const block = await this.read((client) =>
      client.getBlock({ blockNumber: BigInt(number) }).catch((error: unknown): undefined => {
        if (!(error instanceof BlockNotFoundError)) throw error;
      }),
    );
    if (!block) return undefined;
    const { hash, number: found, timestamp, transactions } = block;
    return { hash, number: Number(found), timestamp: Number(timestamp), transactions };
  }

  /** The number of the latest block. @throws ChainAwayError */
  async blockNumber(): Promise<number> {
    // `getBlockNumber` keeps an answer of each client for ever.
    return Number(await this.read((client) => client.request({ method: 'eth_blockNumber' })));
  }
}

/** Returns the error of this module that viem has wrapped; an error of viem's own is about the node's answer. */
function ownErrorOf(error: BaseError): Error {
  const isOwn = (each: unknown) =>
    each instanceof ChainAwayError || each instanceof NodeRefusalError;
  return error.walk(isOwn) ?? new ChainAwayError({ cause: error });
}

/** Throws a refusal as the node's own trouble. */
function throwAway(error: unknown): never {
  throw error instanceof NodeRefusalError ? new ChainAwayError({ cause: error }) : error;
}

/** How a node is reached. */
type Reached = Required<Pick<StrictCall, 'url' | 'agent'>>;

async function ask(node: Reached, { method, params = [] }: RpcRequest): Promise<unknown> {
  const request = { jsonrpc: '2.0', id: 1, method, params };
  const text = await answerTo(node, request).catch((cause: unknown) => {
    throw new ChainAwayError({ cause });
  });
  const answer = rpcAnswer.safeParse(tryParseJson(text ?? ''));
  if (!answer.success) throw noAnswer();
  if ('error' in answer.data) {
    const { code, data } = answer.data.error;
    throw new NodeRefusalError(code, data);
  }
  const result = ANSWERS.get(method)?.safeParse(answer.data.result);
  if (!result?.success) throw noAnswer();
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
