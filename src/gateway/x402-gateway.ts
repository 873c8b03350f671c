import * as z from 'zod';
import { ServiceError } from '../lib/errors.js';
import { tryParseJson, type JsonObject } from '../lib/json.js';
import { boundedRequest, textOf } from '../platform/http/strict-call.js';

/** Milliseconds for the gateway's whole answer. */
const CALL_MS = 10_000;

const MAX_ANSWER_BYTES = 1024 * 1024;

/** Shown if a failure has no message. */
const NO_MESSAGE = 'Connection failed';

export const colonyEndpoints = z
  .object({
    endpoints: z.array(z.object({ slug: z.string(), description: z.string(), price: z.string() })),
  })
  .meta({ id: 'ColonyEndpoints' });

export const colonyFitness = z
  .object({
    score: z.number().min(0).max(100),
    tier: z.string(),
    details: z.record(z.string(), z.number()),
  })
  .meta({ id: 'ColonyFitness' });

export const colonyPricing = z
  .object({
    agentId: z.string(),
    tier: z.string(),
    pricing: z.object({ rate: z.number(), discount: z.number() }),
    fitness: z.object({ score: z.number(), tier: z.string() }),
  })
  .meta({ id: 'ColonyPricing' });

/** An answer that is passed on as the gateway sends it. */
const anyAnswer = z.record(z.string(), z.json());

const health = z.object({ status: z.string().default('ok') }).catchall(z.json());

/** 500: the x402 gateway failed, or sent no valid answer; the reason is not shown to the caller. */
export class X402GatewayError extends ServiceError {
  override readonly name = 'X402GatewayError';

  constructor(cause?: unknown) {
    super(500, 'x402 gateway error', undefined, {}, { cause });
  }
}

export interface X402Call {
  /** Path below the gateway's address. */
  readonly path: string;
  /** Fields to post; without any the call is a GET. */
  readonly fields?: object;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  /** Is called when the connection is made, before anything is sent. */
  readonly onConnected?: () => void;
}

export interface X402Answer {
  readonly status: number;
  /** Undefined if the answer is not JSON, too long, or ended early. */
  readonly said: unknown;
}

export interface JoiningAgent {
  readonly agentId: string;
  readonly walletAddress: string;
}

export type X402Health =
  | { readonly isReachable: true; readonly fields: z.output<typeof health> }
  | { readonly isReachable: false; readonly reason: string };

/** The x402 gateway, whose address may hold credentials. */
export class X402Gateway {
  /** The address without credentials, path and query; null without an address. */
  readonly shownAddress: string | null;
  readonly #url: URL | undefined;
  readonly #callMs: number;

  /** @param url undefined without a gateway: each call then fails. */
  constructor(url: string | undefined, { callMs = CALL_MS } = {}) {
    this.#callMs = callMs;
    this.#url = url === undefined ? undefined : new URL(url);
    this.shownAddress = this.#url?.origin ?? null;
  }

  async health(signal: AbortSignal): Promise<X402Health> {
    try {
      const fields = await this.#answerOf(health, { path: '/health', signal });
      return { isReachable: true, fields };
    } catch (error) {
      const reason = error instanceof Error ? error.message : '';
      return { isReachable: false, reason: reason || NO_MESSAGE };
    }
  }

  /** Lists what the gateway sells. @throws X402GatewayError */
  endpoints(signal: AbortSignal) {
    return masked(this.#answerOf(colonyEndpoints, { path: '/api/endpoints', signal }));
  }

  /** Reads an agent's fitness. @throws X402GatewayError */
  fitness(agentId: string, call: Pick<X402Call, 'idempotencyKey' | 'signal'>) {
    const request = { ...call, path: '/api/fitness', fields: { agentId } };
    return masked(this.#answerOf(colonyFitness, request));
  }

  /** Reads an agent's prices. @throws X402GatewayError */
  pricing(agentId: string, call: Pick<X402Call, 'idempotencyKey' | 'signal'>) {
    const request = { ...call, path: '/api/pricing', fields: { agentId } };
    return masked(this.#answerOf(colonyPricing, request));
  }

  /** Registers an agent with the gateway's colony. @throws X402GatewayError */
  joinColony(fields: JoiningAgent, idempotencyKey: string) {
    const request = { path: '/api/join-colony', fields, idempotencyKey };
    return masked(this.#answerOf(anyAnswer, request));
  }

  /** Sends one request. @throws connection errors, and the reason of an aborted signal */
  async send({ fields, idempotencyKey, onConnected, path, signal }: X402Call): Promise<X402Answer> {
    if (this.#url === undefined) throw new Error('X402_GATEWAY_URL is not set');
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}${path}`;
    const timeout = AbortSignal.timeout(this.#callMs);
    const { body, status } = await boundedRequest({
      url: url.href,
      body: fields,
      accept: 'application/json',
      headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
      maxBytes: MAX_ANSWER_BYTES,
      onConnected,
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    return { status, said: body && (await jsonIn(body)) };
  }

  async #answerOf<S extends z.ZodType>(schema: S, call: X402Call): Promise<z.output<S>> {
    const { said, status } = await this.send(call);
    if (!isSuccess(status)) throw new Error(`The x402 gateway answered with status ${status}`);
    const read = parsed(schema, said);
    if (read === undefined) throw new Error('The x402 gateway sent no valid answer');
    return read;
  }
}

export const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** Returns an answer that is passed on as it is; undefined if it is no object. */
export const objectIn = (said: unknown): JsonObject | undefined => parsed(anyAnswer, said);

async function masked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new X402GatewayError(cause);
  }
}

async function jsonIn(body: AsyncIterable<Buffer>): Promise<unknown> {
  try {
    return tryParseJson(await textOf(body));
  } catch {
    return undefined;
  }
}

/** Returns undefined for an invalid answer, also one nested so deeply that reading it overflows the stack. */
function parsed<S extends z.ZodType>(schema: S, said: unknown): z.output<S> | undefined {
  try {
    return schema.safeParse(said).data;
  } catch {
    return undefined;
  }
}
