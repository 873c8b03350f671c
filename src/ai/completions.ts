import type { Logger } from 'pino';
import type { Plan } from '../accounts/plans.js';
import type { Meter } from '../usage/meter.js';
import type { UsageRecord } from '../usage/usage-record.js';
import { hasQuota } from '../usage/quota.js';
import {
  askForAnswer,
  askForStream,
  primed,
  type Ask,
  type CompletionStream,
} from './ask-provider.js';
import { CircuitBreaker } from './circuit-breaker.js';
import type { ChatBody, Completion, TokenUsage } from './completion.js';
import { costOf } from './cost.js';
import { NoAnswerError, type AttemptResult } from './no-answer-error.js';
import { ProviderError } from './provider-error.js';
import type { Attempt, Providers, Route } from './route.js';
import { StreamUsage } from './stream-usage.js';
import { tokenBound, usageEstimate, withOutputBound } from './token-bound.js';

/** One call by somebody who was let in. */
export interface Call {
  readonly callId: string;
  readonly userId: string;
  readonly agentId: string | null;
  /** Whose quota binds; undefined for administrators. */
  readonly plan: Plan | undefined;
  /** The path that was called. */
  readonly endpoint: string;
  readonly route: Route;
  readonly request: ChatBody;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
}

/** Who served a call, and which attempts were made. */
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
  /** What was used; to be asked for when the chunks have ended. */
  usage(): TokenUsage;
  /** OpenAI `chat.completion.chunk`s as JSON. To be returned if it is not read to its end. */
  readonly chunks: AsyncGenerator<string>;
}

/** Failures of which another model is no cure. */
const FINAL: ReadonlySet<string> = new Set(['refused', 'bad_request']);

/** No call uses more, whatever a provider says: its cost still fits the column of costs. */
const MAX_TOKENS = 50_000_000;

interface CompletionsOptions {
  readonly providers: Providers;
  /** `AI_MODEL_TIMEOUT_MS`: for each attempt. */
  readonly timeoutMs: number;
  readonly meter: Meter;
  readonly log: Logger;
  /** Counts attempts. */
  readonly onAttempt?: (result: AttemptResult) => void;
}

/** Answers chat completions: holds the quota, asks who is on the route, and records the usage. */
export class Completions {
  readonly #circuit = new CircuitBreaker();

  readonly #options: CompletionsOptions;

  constructor(options: CompletionsOptions) {
    this.#options = options;
  }

  /** @throws QuotaExceededError; NoAnswerError when nobody answers. */
  async answer(call: Call): Promise<Answered> {
    const { result, attempt, attempts } = await this.#begin(call, askForAnswer);
    this.#circuit.succeeded(attempt);
    const usage = result.usage ?? usageEstimate(call.request, Math.ceil(result.content.length / 4));
    this.#record(call, attempt, usage);
    return { completion: result, usage, ...servedBy(attempt), attempts };
  }

  /** Comes back when the answer has begun. @throws QuotaExceededError; NoAnswerError. */
  async stream(call: Call): Promise<Streaming> {
    const { result, attempt, attempts } = await this.#begin(call, askForStream);
    const used = new StreamUsage(call.request, result);
    this.#options.meter.begin(call.callId, () => this.#recordOf(call, attempt, used.soFar));
    const metered = this.#metered(call, attempt, result, used);
    return {
      chunks: await primed(metered),
      usage: () => used.soFar,
      ...servedBy(attempt),
      attempts,
    };
  }

  async #begin<T>(
    call: Call,
    ask: (ask: Ask) => Promise<T>,
  ): Promise<{ result: T; attempt: Attempt; attempts: readonly AttemptResult[] }> {
    const { callId, userId, plan, request } = call;
    const { meter } = this.#options;
    // To reckon it, all of the conversation is looked through.
    const tokens = hasQuota(plan) ? tokenBound(request) : 0;
    await meter.reserve({ callId, userId, plan, tokens });
    try {
      return await this.#tryInOrder(call, ask);
    } catch (error) {
      meter.release(callId);
      throw error;
    }
  }

  /** Those who keep failing come last: better asked than nobody. */
  async #tryInOrder<T>(call: Call, ask: (ask: Ask) => Promise<T>) {
    const attempts: AttemptResult[] = [];
    const skipped = call.route.filter((attempt) => this.#circuit.isOpen(attempt));
    const inTurn = [...call.route.filter((attempt) => !skipped.includes(attempt)), ...skipped];
    let last: ProviderError | undefined;
    for (const attempt of inTurn) {
      const began = performance.now();
      const done = (outcome: AttemptResult['outcome']) =>
        attempts.push(this.#attemptResult(attempt, outcome, performance.now() - began));
      this.#circuit.probing(attempt);
      try {
        const result = await ask(this.#askOf(call, attempt));
        done('ok');
        if (attempts.length > 1) this.#logAttempts(call, attempts);
        return { result, attempt, attempts };
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        this.#circuit.failed(attempt, error);
        done(error.failure);
        last = error;
        if (FINAL.has(error.failure)) break;
      }
    }
    this.#logAttempts(call, attempts);
    if (last === undefined) throw new TypeError('a route has somebody on it');
    throw new NoAnswerError(last, attempts);
  }

  #askOf(call: Call, { provider: name, model, entry }: Attempt): Ask {
    const provider = this.#options.providers[name];
    if (!provider) throw new TypeError(`${name} is not configured`);
    const { plan, signal } = call;
    const request = { ...call.request, model };
    return {
      name,
      provider,
      // Where nothing is held there is nothing to bound.
      request: hasQuota(plan) ? withOutputBound(request, entry?.maxOutput) : request,
      timeoutMs: this.#options.timeoutMs,
      signal,
    };
  }

  #attemptResult(
    { provider, model }: Attempt,
    outcome: AttemptResult['outcome'],
    ms: number,
  ): AttemptResult {
    const result = { provider, model, outcome, ms: Math.round(ms) };
    this.#options.onAttempt?.(result);
    return result;
  }

  #logAttempts({ callId, userId, agentId }: Call, attempts: readonly AttemptResult[]): void {
    this.#options.log.warn({ callId, userId, agentId, tried: attempts }, 'AI providers failed');
  }

  /** Records before the last piece is out, and also when nobody takes the rest. */
  async *#metered(
    call: Call,
    attempt: Attempt,
    stream: CompletionStream,
    used: StreamUsage,
  ): AsyncGenerator<string> {
    let brokeOff: ProviderError | undefined;
    try {
      yield ''; // where `primed` leaves it
      for await (const chunk of stream.chunks) {
        used.countPiece();
        yield chunk;
      }
      used.complete();
    } catch (error) {
      if (error instanceof ProviderError) brokeOff = error;
      throw error;
    } finally {
      if (brokeOff) this.#circuit.failed(attempt, brokeOff);
      else this.#circuit.succeeded(attempt);
      this.#record(call, attempt, used.soFar);
      await stream.chunks.return(undefined);
    }
  }

  #record(call: Call, attempt: Attempt, usage: TokenUsage): void {
    this.#options.meter.record(this.#recordOf(call, attempt, usage));
  }

  #recordOf(call: Call, attempt: Attempt, usage: TokenUsage): UsageRecord {
    const { callId, userId, agentId, endpoint } = call;
    const { provider, model } = servedBy(attempt);
    const counted = {
      inputTokens: Math.min(usage.inputTokens, MAX_TOKENS),
      outputTokens: Math.min(usage.outputTokens, MAX_TOKENS),
    };
    return {
      callId,
      userId,
      agentId,
      provider,
      model: cutOff(model),
      ...counted,
      costUsd: costOf(attempt.entry, counted),
      endpoint,
      at: new Date().toISOString(),
    };
  }
}

/** As long as its column, and not in the middle of a character: the database would refuse that. */
const cutOff = (model: string) => model.slice(0, 100).replace(/[\ud800-\udbff]$/, '');

const servedBy = ({ provider, model }: Attempt) => ({ provider, model: `${provider}/${model}` });
