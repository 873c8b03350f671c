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
import { UnavailableError } from '../../lib/errors.js';
import { boundedRequest, textOf, type StrictCall } from '../../platform/http/strict-call.js';
import { isObject, tryParseJson } from '../../lib/json.js';
import { setBounded } from '../../lib/bounded-map.js';
import { cachedFor } from '../../lib/cached-for.js';
import { FairLimiter, type Caller } from '../../lib/fair-limiter.js';
import { ANSWERS, hexData, type Block, type Receipt } from './answers.js';

/** Milliseconds for a request and its answer. */
const CALL_TIMEOUT_MS = 5_000;

/** Milliseconds until an idle connection is closed. */
const IDLE_MS = 4_000;

/** Maximum number of bytes of an answer; the receipt of a payment to a hundred recipients has some 150 KB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Concurrent requests of a process, concurrent requests of an owner, and an owner's waiting requests. */
const AT_ONCE = 32;
const OF_ONE_OWNER = 20;
const MAX_WAITING = 200;

/** Seconds that a caller waits before it retries while a node is unavailable. */
const RETRY_AFTER_S = 5;

/**
 * Gas of a call that states no limit, since it may run a stranger's code: enough to deploy a wallet and to check
 * its signature (ERC-6492), and a short time for a node.
 */
const CALL_GAS = '0x989680'; // 10,000,000

/** Maximum number of owners whose clients are cached. */
const MAX_CLIENTS = 256;

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
  override readonly name = 'ChainAwayError';

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

/** Code that is run; without `to`, `data` is a constructor, whose result counts. */
export type ChainCall = Pick<CallParameters, 'account' | 'data' | 'gas' | 'to'>;

interface NodePlace {
  readonly chainId: number;
  /** Undefined makes the chain unavailable. */
  readonly url: string | undefined;
}

/** The owner that a node is queried for, and its urgency. */
export type NodeCaller = Pick<Caller, 'owner' | 'isUrgent'>;

/** The platform itself, for its own work and for answers that all users share. */
export const PLATFORM: NodeCaller = { owner: '', isUrgent: true };

/** A chain whose every request names its owner, for code that works on behalf of users and clients. */
export type Chain = Pick<ChainNode, 'chainId' | 'onBehalfOf'>;

/** The part of a chain that makes some kinds of requests, each for its owner. */
export interface ChainFor<Kinds extends keyof ChainNode> {
  onBehalfOf(caller: NodeCaller): Pick<ChainNode, Kinds>;
}

export type NodeRequest<T> = (client: PublicClient) => Promise<T>;

type RpcRequest = Pick<EIP1193Parameters, 'method' | 'params'>;

/** The connections to a node, shared by all its users. */
class NodeConnections {
  readonly #url: string | undefined;
  readonly #limiter = new FairLimiter({
    atOnce: AT_ONCE,
    perOwner: OF_ONE_OWNER,
    queue: { perOwner: MAX_WAITING, refusal: () => new ChainAwayError() },
  });
  readonly #agent: http.Agent;
  /** Clients by owner; beyond the bound the least recently used client is evicted. */
  readonly #clients = new Map<string, PublicClient>();
  /** Checks the node's chain id. Bypasses the queue, since all other requests wait for it. */
  readonly #checkChain: () => Promise<void>;

  constructor({ chainId, url }: NodePlace) {
    this.#url = url;
    const { Agent } = url?.startsWith('https:') ? https : http;
    this.#agent = new Agent({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: AT_ONCE });
    this.#checkChain = cachedFor(CHAIN_KEPT_MS, async () => {
      const id = await this.#send({ method: 'eth_chainId' }).catch(throwAway);
      if (Number(id) === chainId) return;
      throw new ChainAwayError({ cause: new Error('The node serves another chain') });
    });
  }

  /**
   * Returns a client for an owner. Creating a client takes a quarter of a millisecond, more than many
   * requests.
   */
  clientOf(caller: NodeCaller): PublicClient {
    const name = `${caller.isUrgent ? 'urgent' : 'other'} ${caller.owner}`;
    const client = this.#clients.get(name) ?? this.#newClient(caller);
    setBounded(this.#clients, name, client, MAX_CLIENTS);
    return client;
  }

  /**
   * Makes a client whose requests wait for the owner's turn. It retries nothing, caches nothing and follows no
   * contract to an address outside the chain (ERC-3668).
   */
  #newClient(caller: NodeCaller): PublicClient {
    const request = async (rpc: RpcRequest) => {
      await this.#checkChain();
      return this.#limiter.run(caller, () => this.#send(rpc));
    };
    const transport = custom({ request }, { retryCount: 0 });
    return createPublicClient({ transport, cacheTime: 0, ccipRead: false });
  }

  #send(rpc: RpcRequest): Promise<unknown> {
    if (this.#url === undefined) return Promise.reject(new ChainAwayError());
    return send({ url: this.#url, agent: this.#agent }, withGasLimit(rpc));
  }
}

function withGasLimit(rpc: RpcRequest): RpcRequest {
  const { method, params } = rpc;
  if (method !== 'eth_call' || !Array.isArray(params)) return rpc;
  const given: readonly unknown[] = params;
  const [call, ...others] = given;
  if (!isObject(call) || call.gas !== undefined) return rpc;
  return { method, params: [{ ...call, gas: CALL_GAS }, ...others] };
}

/** A node of one chain. */
export class ChainNode {
  readonly chainId: number;
  readonly #place: NodePlace;
  readonly #connections: NodeConnections;
  readonly #client: PublicClient;

  /** @param connections, asker see `onBehalfOf`. */
  constructor(place: NodePlace, connections = new NodeConnections(place), caller = PLATFORM) {
    this.chainId = place.chainId;
    this.#place = place;
    this.#connections = connections;
    this.#client = connections.clientOf(caller);
  }

  /** Returns the same node for an owner, so that an owner's requests never hold up those of others. */
  onBehalfOf(caller: NodeCaller): ChainNode {
    return new ChainNode(this.#place, this.#connections, caller);
  }

  /** Makes a request that may take effect even if it throws. @throws NodeRefusalError, ChainAwayError */
  async send<T>(request: NodeRequest<T>): Promise<T> {
    try {
      return await request(this.#client);
    } catch (error) {
      throw error instanceof BaseError ? ownErrorOf(error) : error;
    }
  }

  /**
   * Makes a read that any node of the chain can answer.
   *
   * @throws ChainAwayError also if a contract is missing or is another one: the caller can change neither.
   */
  read<T>(request: NodeRequest<T>): Promise<T> {
    return this.send(request).catch(throwAway);
  }

  /**
   * Runs a call as of a block, the latest by default.
   *
   * @throws CallRevertedError, ChainAwayError
   */
  async call(call: ChainCall, block?: number): Promise<Hex> {
    const blockNumber = block === undefined ? undefined : BigInt(block);
    try {
      const { data = '0x' } = await this.send((client) => client.call({ ...call, blockNumber }));
      return data;
    } catch (error) {
      if (error instanceof NodeRefusalError && error.isRevert)
        throw new CallRevertedError(error.message);
      return throwAway(error);
    }
  }

  /** Returns an address's base units of a token, as of the latest block. @throws ChainAwayError */
  async tokenBalance(token: Hex, owner: Hex): Promise<bigint> {
    const call = { abi: erc20Abi, functionName: 'balanceOf', args: [owner] } as const;
    return this.read((client) => client.readContract({ ...call, address: token }));
  }

  /** Returns a transaction's receipt; undefined if it is unknown or not in a block. @throws ChainAwayError */
  async receipt(hash: Hex): Promise<Receipt | undefined> {
    const found = await this.read((client) =>
      client.request({ method: 'eth_getTransactionReceipt', params: [hash] }),
    );
    if (!found) return undefined;
    const { blockHash, blockNumber, gasUsed, logs, status, transactionHash } =
      formatTransactionReceipt(found);
    if (transactionHash !== hash.toLowerCase()) {
      throw new ChainAwayError({
        cause: new Error('The node sent the receipt of another transaction'),
      });
    }
    const succeeded = status === 'success';
    return {
      hash: transactionHash,
      succeeded,
      blockHash,
      blockNumber: Number(blockNumber),
      gasUsed,
      logs,
    };
  }

  /**
   * Reports whether an address has code as of a block, the latest by default: a contract, or code set by
   * the key's owner (EIP-7702). @throws ChainAwayError
   */
  async hasCode(address: Hex, block?: number): Promise<boolean> {
    const blockNumber = block === undefined ? undefined : BigInt(block);
    return (await this.read((client) => client.getCode({ address, blockNumber }))) !== undefined;
  }

  /** Returns the block of a number; undefined if it does not exist yet. @throws ChainAwayError */
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

type Reached = Required<Pick<StrictCall, 'url' | 'agent'>>;

async function send(node: Reached, { method, params = [] }: RpcRequest): Promise<unknown> {
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

const noAnswer = () => new ChainAwayError({ cause: new Error("The node's answer is invalid") });

/** Reads the body also under an error status, since some nodes report JSON-RPC errors that way. */
async function answerTo(node: Reached, question: object): Promise<string | undefined> {
  const { body } = await boundedRequest({
    ...node,
    body: question,
    accept: 'application/json',
    maxBytes: MAX_ANSWER_BYTES,
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  return body && textOf(body);
}
