import type { Logger } from 'pino';
import { hasQuota, type Plan } from '../../types/plans.js';
import { isLoopback } from '../../platform/environment/loopback.js';
import type { Meter } from '../usage/meter.js';
import type { ModelEntry } from '../models/model-set.js';
import { OpenToolCalls } from '../usage/open-tool-calls.js';
import type { ToolCount } from '../usage/tool-counts.js';
import { ToolTally } from '../usage/tool-tally.js';
import type { UsageRecord } from '../usage/usage-record.js';
import { ableRoute } from './able-route.js';
import {
  requestCompletion,
  requestStream,
  primed,
  type ProviderCall,
  type CompletionStream,
} from './call-provider.js';
import { CircuitBreaker } from './circuit-breaker.js';
import type { ChatBody, Completion, TokenUsage } from '../completion/completion.js';
import { costOf } from './cost.js';
import { AbandonedCalls, type CallLifetime, type LeftCallBounds } from './left-calls.js';
import { OwnKeys } from '../own-keys/own-keys.js';
import { OwnKeyRefusedError } from '../own-keys/own-key-store.js';
import { NoAnswerError, type AttemptResult } from './no-answer-error.js';
import { ProviderError } from '../completion/provider-error.js';
import type { Providers } from '../completion/provider-names.js';
import type { Attempt, Route } from './route.js';
import { StreamUsage } from './stream-usage.js';
import {
  tokenBound,
  estimateByElapsedTime,
  usageEstimate,
  withOutputBound,
} from '../completion/token-bound.js';

export interface Call {
  readonly callId: string;
  /** The account that the usage is recorded for. */
  readonly userId: string;
  /** Owner to whom failures and abandoned calls are attributed; the account by default. */
  readonly owner?: string;
  readonly agentId: string | null;
  /** The plan whose quota applies; undefined for administrators. */
  readonly plan: Plan | undefined;
  readonly endpoint: string;
  /** Keys that the caller has brought: calls by these cost nothing and need no quota. */
  readonly ownKeys?: OwnKeys;
  /** True if the calls of tools in the answer count, and the results in the request. */
  readonly countsTools?: boolean;
  readonly route: Route;
  readonly request: ChatBody;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

export interface Served {
  /** `<provider>/<model>`. */
  readonly model: string;
  readonly provider: string;
  readonly attempts: readonly AttemptResult[];
}

export interface Answered extends Served {
  readonly completion: Completion;
  readonly usage: TokenUsage;
}

export interface Streaming extends Served {
  /** Call after the chunks have ended. */
  usage(): TokenUsage;
  /** OpenAI `chat.completion.chunk`s as JSON. Call `return` if it is not read to its end. */
  readonly chunks: AsyncGenerator<string>;
}

/** A call whose tools are counted, if they are. */
interface CountedCall extends Call {
  readonly tools?: ToolTally | undefined;
}

interface Streamed {
  readonly call: CountedCall;
  readonly life: CallLifetime;
  readonly attempt: Attempt;
  readonly stream: CompletionStream;
  readonly used: StreamUsage;
}

/** Reports a failure that another model would not avoid. Without a status the request was not sent. */
const isFinal = ({ failure, status }: ProviderError): boolean =>
  failure === 'refused' || (failure === 'bad_request' && status !== undefined);

/** The provider has worked for each timeout, and no user is charged for it. */
const MAX_TIMEOUTS = 2;

/** An upper bound, in tokens, for models with an unknown context window. */
const UNKNOWN_CONTEXT = 2_000_000;

/** Upper bound for a call, whatever a provider reports, so that its cost fits the database column. */
const MAX_TOKENS = 50_000_000;

/** Called for every model that a call tries; the entry is missing for a model outside the catalogue. */
export type AttemptListener = (result: AttemptResult, entry: ModelEntry | undefined) => void;

interface CompletionsOptions {
  readonly providers: Providers;
  /** Milliseconds for each attempt (`AI_MODEL_TIMEOUT_MS`). */
  readonly timeoutMs: number;
  /** The same at a provider on this machine, unless equal. */
  readonly localTimeoutMs?: number;
  readonly meter: Meter;
  readonly log: Logger;
  /** Limits on reading calls whose clients have disconnected. */
  readonly left?: Partial<LeftCallBounds>;
  readonly onAttempt?: AttemptListener;
}

/**
 * Reserves quota, calls the providers of the route and records the usage, also of a call whose client
 * disconnects, with the provider's figures if they arrive in time.
 */
export class Completions {
  readonly #circuit = new CircuitBreaker();
  readonly #openToolCalls = new OpenToolCalls();
  readonly #left: AbandonedCalls;

  readonly #options: CompletionsOptions;
  readonly #timeouts: ReadonlyMap<string, number>;

  constructor(options: CompletionsOptions) {
    this.#options = options;
    const { localTimeoutMs = options.timeoutMs, providers } = options;
    this.#timeouts = new Map(
      Object.entries(providers).map(([name, { baseUrl }]) => [
        name,
        isLoopback(new URL(baseUrl).host) ? localTimeoutMs : options.timeoutMs,
      ]),
    );
    this.#left = new AbandonedCalls(options.left);
  }

  /** Ends and records the calls whose clients have disconnected. */
  close(): Promise<void> {
    return this.#left.close();
  }

  /**
   * Returns the complete answer. @throws QuotaExceededError; OwnKeyRefusedError; NoAnswerError;
   * UnsupportedError; the abort reason of the caller's signal.
   */
  async answer(given: Call): Promise<Answered> {
    const call = this.#counted(given);
    const life = this.#left.follow(ownerOf(call), call.signal);
    try {
      const { result, attempt, attempts } = await this.#begin(call, life, requestCompletion);
      this.#circuit.succeeded(attempt, ownerOf(call));
      call.tools?.readAnswer(result.json);
      const usage = result.usage ?? usageEstimate(call.request, Math.ceil(result.bytes / 4));
      this.#record(call, attempt, usage);
      return { completion: result, usage, ...servedBy(attempt), attempts };
    } finally {
      life.end();
    }
  }

  /** Answers with a stream, and returns once it has begun. @throws as `answer` does. */
  async stream(given: Call): Promise<Streaming> {
    const call = this.#counted(given);
    const life = this.#left.follow(ownerOf(call), call.signal);
    try {
      const { result, attempt, attempts } = await this.#begin(call, life, requestStream);
      const used = new StreamUsage(call.request, result);
      this.#options.meter.begin(call.callId, () =>
        withTools(this.#recordOf(call, attempt, used.soFar), call.tools?.soFar),
      );
      const metered = this.#metered({ call, life, attempt, stream: result, used });
      return {
        chunks: await primed(metered),
        usage: () => used.soFar,
        ...servedBy(attempt),
        attempts,
      };
    } catch (error) {
      life.end();
      throw error;
    }
  }

  #counted(call: Call): CountedCall {
    if (call.countsTools !== true) return call;
    const { agentId, request, userId } = call;
    const caller = agentId === null ? `user:${userId}` : `agent:${agentId}`;
    return { ...call, tools: new ToolTally(this.#openToolCalls, caller, request) };
  }

  async #begin<T>(
    given: CountedCall,
    life: CallLifetime,
    ask: (ask: ProviderCall) => Promise<T>,
  ): Promise<{ result: T; attempt: Attempt; attempts: readonly AttemptResult[] }> {
    const { ownKeys = OwnKeys.none, request } = given;
    const able = ableRoute(given.route, request, ownKeys.addTo(this.#options.providers));
    const isOwn = ({ provider }: Attempt) => ownKeys.has(provider);
    const route = able.map((attempt) => (isOwn(attempt) ? { ...attempt, isOwn: true } : attempt));
    try {
      return await this.#tryInOrder({ ...given, route }, life, ask);
    } catch (error) {
      // Has no effect on a call whose usage was already recorded.
      this.#options.meter.release(given.callId);
      throw error;
    }
  }

  /** Reserves what the attempts may use. A call by the caller's own key is metered, and needs no quota. */
  async #reserve({ callId, plan, request, route, userId }: Call, isOwn: boolean): Promise<void> {
    const limited = isOwn ? undefined : plan;
    // Computed only for plans with a quota, because it scans the whole conversation.
    const tokens = hasQuota(limited) ? tokenBound(request, widestContext(route)) : 0;
    await this.#options.meter.reserve({ callId, userId, plan: limited, tokens });
  }

  /** Tries the route in order, with failing providers last instead of not at all. */
  async #tryInOrder<T>(
    call: CountedCall,
    life: CallLifetime,
    ask: (ask: ProviderCall) => Promise<T>,
  ) {
    const { callId, request, route } = call;
    const owner = ownerOf(call);
    const attempts: AttemptResult[] = [];
    const skipped = route.filter((attempt) => this.#circuit.isOpen(attempt, owner));
    const inTurn = [...route.filter((attempt) => !skipped.includes(attempt)), ...skipped];
    let last: ProviderError | undefined;
    let reserved: 'nothing' | 'own' | 'quota' = 'nothing';
    for (const attempt of inTurn) {
      const { isOwn = false } = attempt;
      if (reserved === 'nothing' || (reserved === 'own' && !isOwn)) {
        await this.#reserve(call, isOwn);
        reserved = isOwn ? 'own' : 'quota';
      }
      // The client has disconnected, so a further attempt is useless.
      if (life.left) throw call.signal.reason;
      const began = performance.now();
      const done = (outcome: AttemptResult['outcome']) =>
        attempts.push(this.#attemptResult(attempt, outcome, performance.now() - began));
      this.#circuit.probing(attempt, owner);
      const used = () => this.#recordOf(call, attempt, estimateByElapsedTime(request, began));
      this.#options.meter.expect(callId, used);
      try {
        const result = await ask(this.#callOf(call, life, attempt));
        done('ok');
        if (attempts.length > 1) this.#logAttempts(call, attempts);
        return { result, attempt, attempts };
      } catch (error) {
        if (!(error instanceof ProviderError)) {
          // The client disconnected during the attempt and its call was not continued.
          if (life.signal.aborted) this.#options.meter.record(withTools(used(), call.tools?.end()));
          throw error;
        }
        done(error.failure);
        if (isOwn && error.failure === 'bad_key') throw new OwnKeyRefusedError(attempt.provider);
        this.#circuit.failed(attempt, owner, error);
        last = error;
        if (isFinal(error) || timedOut(attempts) === MAX_TIMEOUTS) break;
      }
    }
    this.#logAttempts(call, attempts);
    if (last === undefined) throw new TypeError('a route needs at least one attempt');
    throw new NoAnswerError(last, attempts);
  }

  #callOf(
    call: Call,
    { signal }: CallLifetime,
    { provider: name, model, entry, isOwn }: Attempt,
  ): ProviderCall {
    const { ownKeys = OwnKeys.none, plan } = call;
    const provider = ownKeys.addTo(this.#options.providers)[name];
    if (!provider) throw new TypeError(`${name} is not configured`);
    const request = { ...call.request, model };
    return {
      name,
      provider,
      request: withOutputBound(request, {
        maxOutput: entry?.maxOutput,
        isHeld: !isOwn && hasQuota(plan),
      }),
      timeoutMs: this.#timeouts.get(name) ?? this.#options.timeoutMs,
      signal,
    };
  }

  #attemptResult(
    { provider, model, entry }: Attempt,
    outcome: AttemptResult['outcome'],
    ms: number,
  ): AttemptResult {
    const result = { provider, model, outcome, ms: Math.round(ms) };
    this.#options.onAttempt?.(result, entry);
    return result;
  }

  #logAttempts({ callId, userId, agentId }: Call, attempts: readonly AttemptResult[]): void {
    this.#options.log.warn({ callId, userId, agentId, tried: attempts }, 'AI providers failed');
  }

  /** Records the usage before the stream ends; drains a stream that its client abandons. */
  async *#metered(streamed: Streamed): AsyncGenerator<string> {
    const { stream, used } = streamed;
    let brokeOff: unknown;
    let over = false;
    try {
      yield ''; // `primed` stops here
      for (;;) {
        const next = await stream.chunks.next();
        if (next.done === true) break;
        used.countPiece();
        streamed.call.tools?.readChunk(next.value);
        yield next.value;
      }
      used.complete();
      over = true;
    } catch (error) {
      brokeOff = error;
      over = true;
      throw error;
    } finally {
      if (over) await this.#settle(streamed, brokeOff);
      else void this.#drain(streamed);
    }
  }

  /** Drains a stream after the client has disconnected, to learn its usage, within the limits. */
  async #drain(streamed: Streamed): Promise<void> {
    const { life, stream, used } = streamed;
    life.leave();
    let brokeOff: unknown;
    try {
      let bytes = 0;
      while (!life.signal.aborted && bytes < this.#left.bounds.bytes) {
        const next = await stream.chunks.next();
        if (next.done === true) {
          used.complete();
          break;
        }
        used.countPiece();
        bytes += Buffer.byteLength(next.value);
      }
    } catch (error) {
      // Only the circuit breaker uses this error; no client waits for it.
      brokeOff = error;
    }
    await this.#settle(streamed, brokeOff);
  }

  async #settle({ call, life, attempt, stream, used }: Streamed, brokeOff: unknown) {
    if (brokeOff instanceof ProviderError) this.#circuit.failed(attempt, ownerOf(call), brokeOff);
    else if (used.isComplete) this.#circuit.succeeded(attempt, ownerOf(call));
    this.#record(call, attempt, used.soFar);
    life.end();
    await stream.chunks.return(undefined);
  }

  #record(call: CountedCall, attempt: Attempt, usage: TokenUsage): void {
    const record = this.#recordOf(call, attempt, usage);
    this.#options.meter.record(withTools(record, call.tools?.end()));
  }

  #recordOf(call: Call, attempt: Attempt, usage: TokenUsage): UsageRecord {
    const { callId, userId, agentId, endpoint } = call;
    const { provider, model } = servedBy(attempt);
    const counted = withinBounds(usage);
    return {
      callId,
      userId,
      agentId,
      provider,
      model: cutOff(model),
      ...counted,
      costUsd: costOf(attempt.isOwn ? undefined : attempt.entry, counted),
      ...(attempt.isOwn && { ownKey: true }),
      endpoint,
      at: new Date().toISOString(),
    };
  }
}

const withTools = (record: UsageRecord, tools: readonly ToolCount[] = []): UsageRecord =>
  tools.length === 0 ? record : { ...record, tools: [...tools] };

const ownerOf = ({ owner, userId }: Call): string => owner ?? userId;

/** Bounds what a provider reports; cached tokens are part of the input. */
function withinBounds({
  inputTokens,
  outputTokens,
  cacheReadTokens = 0,
  cacheWriteTokens = 0,
}: TokenUsage): Required<TokenUsage> {
  const input = Math.min(inputTokens, MAX_TOKENS);
  const read = Math.min(cacheReadTokens, input);
  return {
    inputTokens: input,
    outputTokens: Math.min(outputTokens, MAX_TOKENS),
    cacheReadTokens: read,
    cacheWriteTokens: Math.min(cacheWriteTokens, input - read),
  };
}

const timedOut = (attempts: readonly AttemptResult[]): number =>
  attempts.filter(({ outcome }) => outcome === 'timeout').length;

const widestContext = (route: Route): number =>
  Math.max(...route.map(({ entry }) => entry?.contextWindow ?? UNKNOWN_CONTEXT));

/**
 * Cuts a model name to its column's length without splitting a surrogate pair, which the database rejects.
 */
const cutOff = (model: string) => model.slice(0, 100).replace(/[\ud800-\udbff]$/, '');

const servedBy = ({ provider, model }: Attempt) => ({ provider, model: `${provider}/${model}` });
