import pLimit from 'p-limit';
import type { Hex } from 'viem';
import { z } from 'zod';
import { UnavailableError } from '../errors.js';
import { strictCall, textOf } from '../http/strict-call.js';
import { tryParseJson } from '../json.js';
import { keptFor } from '../kept-for.js';

/** For one question and its answer, in milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
const MAX_ANSWER_BYTES = 256 * 1024;

/** Questions of one process at a time, and how many may wait for their turn. */
const AT_ONCE = 20;
const MAX_WAITING = 200;

/** For how long a node is taken to be of the chain that it was last found to be of. */
const CHAIN_KEPT_MS = 60_000;

/**
 * What nodes say of a call that the called contract has refused, or that has broken off: 3 as EIP-1474's
 * successors have it, the others from before.
 */
const EXECUTION_ERRORS: readonly number[] = [3, -32_000, -32_015];

const rpcAnswer = z.union([
  z.object({ error: z.object({ code: z.number() }) }),
  z.object({ result: z.string().regex(/^0x[\da-f]*$/i) }),
]);

/** 503: no node is configured, or it does not answer as one of this chain. */
export class ChainAwayError extends UnavailableError {
  constructor(options?: ErrorOptions) {
    super('Chain unavailable', options);
  }
}

/** The contract that was called has refused, or broke off. */
export class CallRevertedError extends Error {
  override readonly name = 'CallRevertedError';
}

/** Code that is run as of the latest block, and leaves nothing behind. */
export interface ChainCall {
  /** The contract; without one `data` is a constructor, whose result counts. */
  readonly to?: Hex;
  readonly data: Hex;
}

/** A node of one chain, by JSON-RPC. */
export class ChainNode {
  readonly chainId: number;
  readonly #url: string | undefined;
  readonly #turns = pLimit(AT_ONCE);
  readonly #checkChain = keptFor(CHAIN_KEPT_MS, async () => {
    const id = await this.#ask('eth_chainId', []);
    if (parseInt(id, 16) !== this.chainId) {
      throw new ChainAwayError({ cause: new Error('The node is of another chain') });
    }
  });

  /** @param url without one, the chain is away. */
  constructor({ chainId, url }: { readonly chainId: number; readonly url: string | undefined }) {
    this.chainId = chainId;
    this.#url = url;
  }

  /** @throws CallRevertedError, ChainAwayError */
  async call({ to, data }: ChainCall): Promise<Hex> {
    await this.#checkChain();
    return this.#ask('eth_call', [{ ...(to && { to }), data }, 'latest']);
  }

  #ask(method: string, params: readonly unknown[]): Promise<Hex> {
    const url = this.#url;
    if (url === undefined || this.#turns.pendingCount >= MAX_WAITING) throw new ChainAwayError();
    return this.#turns(() => ask(url, { jsonrpc: '2.0', id: 1, method, params }));
  }
}

async function ask(url: string, question: object): Promise<Hex> {
  const text = await answerTo(url, question).catch((cause: unknown) => {
    throw new ChainAwayError({ cause });
  });
  const answer = rpcAnswer.safeParse(tryParseJson(text ?? ''));
  if (!answer.success) {
    throw new ChainAwayError({ cause: new Error('The node sent what is no answer') });
  }
  if ('result' in answer.data) return answer.data.result as Hex; // its form was just looked at
  const { code } = answer.data.error;
  const refusal = new CallRevertedError(`The node answered with the error ${code}`);
  if (EXECUTION_ERRORS.includes(code)) throw refusal;
  throw new ChainAwayError({ cause: refusal });
}

/** Also where the status says that it is an error: some nodes do. */
async function answerTo(url: string, question: object): Promise<string | undefined> {
  const { body } = await strictCall({
    url,
    body: question,
    accept: 'application/json',
    maxBytes: MAX_ANSWER_BYTES,
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  return body && textOf(body);
}
