import { setBounded } from '../bounded-map.js';
import type { ProviderError, ProviderFailure } from './provider-error.js';
import type { ProviderName } from './provider-names.js';

/** Failures in a row after which somebody is skipped, and for how many milliseconds. */
const FAILURES = 3;
const SKIP_MS = 30_000;
/** The longest that a provider's own wish for a pause is followed. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
const MAX_KNOWN = 1_000;

/** Who is asked: a provider for one of its models. */
export interface Target {
  readonly provider: ProviderName;
  readonly model: string;
}

interface State {
  readonly failures: number;
  readonly skipUntil: number;
}

/** Faults of the whole provider; what else goes wrong is one model's matter. */
const OF_PROVIDER: ReadonlySet<ProviderFailure> = new Set(['bad_key', 'unreachable']);
/** Faults of the request: they say nothing of who was asked. */
const OF_REQUEST: ReadonlySet<ProviderFailure> = new Set(['too_long', 'refused', 'bad_request']);

/**
 * Remembers who keeps failing. Such a one is skipped for a while; then one call at a time tries it,
 * until it answers. In this process alone: another finds out for itself.
 */
export class CircuitBreaker {
  readonly #states = new Map<string, State>();

  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Whether to ask somebody else first. Who asks all the same is the one who tries. */
  isOpen(target: Target): boolean {
    return keysOf(target).some((key) => (this.#states.get(key)?.skipUntil ?? 0) > this.#now());
  }

  /** Says that a call is on its way: while it is, others still skip one that was failing. */
  probing(target: Target): void {
    for (const key of keysOf(target)) {
      const state = this.#states.get(key);
      if (state === undefined || state.skipUntil === 0) continue;
      const skipUntil = Math.max(state.skipUntil, this.#now() + SKIP_MS);
      this.#set(key, { ...state, skipUntil });
    }
  }

  succeeded(target: Target): void {
    for (const key of keysOf(target)) this.#states.delete(key);
  }

  failed(target: Target, { failure, retryAfterMs }: ProviderError): void {
    if (OF_REQUEST.has(failure)) return;
    const [ofModel, ofProvider] = keysOf(target);
    const key = OF_PROVIDER.has(failure) ? ofProvider : ofModel;
    const failures = (this.#states.get(key)?.failures ?? 0) + 1;
    const pause = retryAfterMs === undefined ? 0 : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
    const skipMs = Math.max(failures >= FAILURES ? SKIP_MS : 0, pause);
    this.#set(key, { failures, skipUntil: skipMs === 0 ? 0 : this.#now() + skipMs });
  }

  #set(key: string, state: State): void {
    setBounded(this.#states, key, state, MAX_KNOWN);
  }
}

const keysOf = ({ provider, model }: Target): readonly [string, string] => [
  `${provider}/${model}`,
  provider,
];
