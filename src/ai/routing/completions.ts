import type { Logger } from 'pino';
import { hasQuota, type Plan } from '../../types/plans.js';
import type { Meter } from '../usage/meter.js';
import type { UsageRecord } from '../usage/usage-record.js';
import {
  askForAnswer,
  askForStream,
  primed,
  type Ask,
  type CompletionStream,
} from './ask-provider.js';
import { CircuitBreaker } from './circuit-breaker.js';
import type { ChatBody, Completion, TokenUsage } from '../completion/completion.js';
import { costOf } from './cost.js';
import { LeftCalls, type CallLife, type LeftCallBounds } from './left-calls.js';
import { NoAnswerError, type AttemptResult } from './no-answer-error.js';
import { ProviderError } from '../completion/provider-error.js';
import type { Attempt, Providers, Route } from './route.js';
import { StreamUsage } from './stream-usage.js';
import {
  tokenBound,
  unseenUsage,
  usageEstimate,
  withOutputBound,
} from '../completion/token-bound.js';

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

/** A stream under way. */
interface Streamed {
  readonly call: Call;
  readonly life: CallLife;
  readonly attempt: Attempt;
  readonly stream: CompletionStream;
  readonly used: StreamUsage;
}

/** Failures of which another model is no cure. */
const FINAL: ReadonlySet<string> = new Set(['refused', 'bad_request']);

/** So many may take too long: the provider has worked for each of them, and nobody is charged for it. */
const MAX_TIMEOUTS = 2;

/** No model takes in more, in tokens. */
const UNKNOWN_CONTEXT = 2_000_000;

/** No call uses more, whatever a provider says: its cost still fits the column of costs. */
const MAX_TOKENS = 50_000_000;

interface CompletionsOptions {
  readonly providers: Providers;
  /** `AI_MODEL_TIMEOUT_MS`: for each attempt. */
  readonly timeoutMs: number;
  readonly meter: Meter;
  readonly log: Logger;
  /** How much is still taken in of calls whose clients have left. */
  readonly left?: Partial<LeftCallBounds>;
  /** Counts attempts. */
  readonly onAttempt?: (result: AttemptResult) => void;
}

/**
 * Answers chat completions: holds the quota, asks who is on the route, and records the usage. A call
 * that a client leaves is recorded too, by what the provider says of it where that can be waited for.
 */
export class Completions {
  readonly #circuit = new CircuitBreaker();
  readonly #left: LeftCalls;

  readonly #options: CompletionsOptions;

  constructor(options: CompletionsOptions) {
    this.#options = options;
    this.#left = new LeftCalls(options.left);
  }

  /** Records the calls that clients have left, as far as they have come. */
  close(): Promise<void> {
    return this.#left.close();
  }

  /** @throws QuotaExceededError; NoAnswerError when nobody answers; what the caller's signal was aborted with. */
  async answer(call: Call): Promise<Answered> {
    const life = this.#left.follow(call.userId, call.signal);
    try {
      const { result, attempt, attempts } = await this.#begin(call, life, askForAnswer);
      this.#circuit.succeeded(attempt, call.userId);
      const usage = result.usage ?? usageEstimate(call.request, Math.ceil(result.bytes / 4));
      this.#record(call, attempt, usage);
      return { completion: result, usage, ...servedBy(attempt), attempts };
    } finally {
      life.end();
    }
  }

  /** Comes back when the answer has begun. @throws as `answer` does. */
  async stream(call: Call): Promise<Streaming> {
    const life = this.#left.follow(call.userId, call.signal);
    try {
      const { result, attempt, attempts } = await this.#begin(call, life, askForStream);
      const used = new StreamUsage(call.request, result);
      this.#options.meter.begin(call.callId, () => this.#recordOf(call, attempt, used.soFar));
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

  async #begin<T>(
    call: Call,
    life: CallLife,
    ask: (ask: Ask) => Promise<T>,
  ): Promise<{ result: T; attempt: Attempt; attempts: readonly AttemptResult[] }> {
    const { callId, userId, plan, request, route } = call;
    const { meter } = this.#options;
    // To reckon it, all of the conversation is looked through.
    const tokens = hasQuota(plan) ? tokenBound(request, widestContext(route)) : 0;
    await meter.reserve({ callId, userId, plan, tokens });
    try {
      return await this.#tryInOrder(call, life, ask);
    } catch (error) {
      // What was recorded has nothing to release.
      meter.release(callId);
      throw error;
    }
  }

  /** Those who keep failing come last: better asked than nobody. */
  async #tryInOrder<T>(call: Call, life: CallLife, ask: (ask: Ask) => Promise<T>) {
    const { callId, request, route, userId } = call;
    const attempts: AttemptResult[] = [];
    const skipped = route.filter((attempt) => this.#circuit.isOpen(attempt, userId));
    const inTurn = [...route.filter((attempt) => !skipped.includes(attempt)), ...skipped];
    let last: ProviderError | undefined;
    for (const attempt of inTurn) {
      // Nobody waits for another one's answer.
      if (life.left) throw call.signal.reason;
      const began = performance.now();
      const done = (outcome: AttemptResult['outcome']) =>
        attempts.push(this.#attemptResult(attempt, outcome, performance.now() - began));
      this.#circuit.probing(attempt, userId);
      const used = () => this.#recordOf(call, attempt, unseenUsage(request, began));
      this.#options.meter.expect(callId, used);
      try {
        const result = await ask(this.#askOf(call, life, attempt));
        done('ok');
        if (attempts.length > 1) this.#logAttempts(call, attempts);
        return { result, attempt, attempts };
      } catch (error) {
        if (!(error instanceof ProviderError)) {
          // Left while it was being answered, and not waited for.
          if (life.signal.aborted) this.#options.meter.record(used());
          throw error;
        }
        this.#circuit.failed(attempt, userId, error);
        done(error.failure);
        last = error;
        if (FINAL.has(error.failure) || timedOut(attempts) === MAX_TIMEOUTS) break;
      }
    }
    this.#logAttempts(call, attempts);
    if (last === undefined) throw new TypeError('a route has somebody on it');
    throw new NoAnswerError(last, attempts);
  }

  #askOf(call: Call, { signal }: CallLife, { provider: name, model, entry }: Attempt): Ask {
    const provider = this.#options.providers[name];
    if (!provider) throw new TypeError(`${name} is not configured`);
    const { plan } = call;
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

  /** Records before the last piece is out; and what nobody takes the rest of, when that is over. */
  async *#metered(streamed: Streamed): AsyncGenerator<string> {
    const { stream, used } = streamed;
    let brokeOff: unknown;
    let over = false;
    try {
      yield ''; // where `primed` leaves it
      for (;;) {
        const next = await stream.chunks.next();
        if (next.done === true) break;
        used.countPiece();
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

  /** Takes in what the client has left, to hear what it used; as far as that may go. */
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
        bytes += next.value.length;
      }
    } catch (error) {
      // What it is that is wrong shows in who is asked next.
      brokeOff = error;
    }
    await this.#settle(streamed, brokeOff);
  }

  async #settle({ call, life, attempt, stream, used }: Streamed, brokeOff: unknown) {
    if (brokeOff instanceof ProviderError) this.#circuit.failed(attempt, call.userId, brokeOff);
    else if (used.isComplete) this.#circuit.succeeded(attempt, call.userId);
    this.#record(call, attempt, used.soFar);
    life.end();
    await stream.chunks.return(undefined);
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

const timedOut = (attempts: readonly AttemptResult[]): number =>
  attempts.filter(({ outcome }) => outcome === 'timeout').length;

const widestContext = (route: Route): number =>
  Math.max(...route.map(({ entry }) => entry?.contextWindow ?? UNKNOWN_CONTEXT));

/** As long as its column, and not in the middle of a character: the database would refuse that. */
const cutOff = (model: string) => model.slice(0, 100).replace(/[\ud800-\udbff]$/, '');

const servedBy = ({ provider, model }: Attempt) => ({ provider, model: `${provider}/${model}` });
