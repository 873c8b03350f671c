import { setBounded } from '../bounded-map.js';
import type { ProviderError, ProviderFailure } from './provider-error.js';
import type { ProviderName } from './provider-names.js';

/** Failures in a row after which somebody is skipped, and for how many milliseconds. */
const FAILURES = 3;
const SKIP_MS = 30_000;
/** The longest that a provider's own wish for a pause is followed. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
const MAX_KNOWN = 10_000;

/** Who is asked: a provider for one of its models. */
export interface Target {
  readonly provider: ProviderName;
  readonly model: string;
}

interface State {
  readonly failures: number;
  /** Whose calls have failed: two at most are told apart. */
  readonly owners: readonly string[];
  readonly skipUntil: number;
}

/** Faults of the whole provider; what else goes wrong is one model's matter. */
const OF_PROVIDER: ReadonlySet<ProviderFailure> = new Set(['bad_key', 'unreachable']);
/** Faults of the request: they say nothing of who was asked. */
const OF_REQUEST: ReadonlySet<ProviderFailure> = new Set(['too_long', 'refused', 'bad_request']);

/**
 * Remembers who keeps failing. Such a one is skipped for a while; then one call at a time tries it,
 * until it answers. In this process alone: another finds out for itself.
 *
 * A caller can have calls fail at will, such as by what takes longer than anybody waits: what fails for one owner
 * alone is skipped for that one, and for everybody what fails for two, or asks for a pause.
 */
export class CircuitBreaker {
  readonly #states = new Map<string, State>();

  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether to ask somebody else first. Who asks all the same is the one who tries. */
  isOpen(target: Target, owner: string): boolean {
    const until = keysOf(target, owner).map((key) => this.#states.get(key)?.skipUntil ?? 0);
    return until.some((skipUntil) => skipUntil > this.#now());
  }

  /** Says that a call is on its way: while it is, others still skip one that was failing. */
  probing(target: Target, owner: string): void {
    for (const key of keysOf(target, owner)) {
      const state = this.#states.get(key);
      if (state === undefined || state.skipUntil === 0) continue;
      const skipUntil = Math.max(state.skipUntil, this.#now() + SKIP_MS);
      this.#set(key, { ...state, skipUntil });
    }
  }

  succeeded(target: Target, owner: string): void {
    for (const key of keysOf(target, owner)) this.#states.delete(key);
  }

  failed(target: Target, owner: string, { failure, retryAfterMs }: ProviderError): void {
    if (OF_REQUEST.has(failure)) return;
    const name = OF_PROVIDER.has(failure) ? target.provider : nameOf(target);
    const pauseMs = retryAfterMs === undefined ? 0 : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
    this.#count(name, owner, { leastOwners: 2, pauseMs });
    this.#count(ofOwner(name, owner), owner, { leastOwners: 1, pauseMs: 0 });
  }

  #count(
    key: string,
    owner: string,
    { leastOwners, pauseMs }: { readonly leastOwners: number; readonly pauseMs: number },
  ): void {
    const known = this.#states.get(key);
    const failures = (known?.failures ?? 0) + 1;
    const owners = [...new Set([...(known?.owners ?? []), owner])].slice(0, 2);
    const keepsFailing = failures >= FAILURES && owners.length >= leastOwners;
    const skipMs = Math.max(keepsFailing ? SKIP_MS : 0, pauseMs);
    const skipUntil = skipMs === 0 ? 0 : this.#now() + skipMs;
    // Nobody alone goes on with what two have begun.
    this.#set(key, { failures, owners: keepsFailing ? [] : owners, skipUntil });
  }

  #set(key: string, state: State): void {
    setBounded(this.#states, key, state, MAX_KNOWN);
  }
}

const nameOf = ({ model, provider }: Target): string => `${provider}/${model}`;

const ofOwner = (name: string, owner: string): string => `${name} of ${owner}`;

const keysOf = (target: Target, owner: string): readonly string[] =>
  [nameOf(target), target.provider].flatMap((name) => [name, ofOwner(name, owner)]);
