import { setBounded } from '../../lib/bounded-map.js';
import type { ProviderError, ProviderFailure } from '../completion/provider-error.js';
import type { ProviderName } from '../completion/provider-names.js';

/** Failures in a row after which somebody is skipped, and for how many milliseconds. */
const FAILURES = 3;
const SKIP_MS = 30_000;
/** The longest that a provider's own wish for a pause is followed, by those to whom it told it. */
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
  /** While the call that tries it may be under way. */
  readonly triedUntil: number;
}

/** Faults of the request: they say nothing of who was asked. */
const OF_REQUEST: ReadonlySet<ProviderFailure> = new Set(['too_long', 'refused', 'bad_request']);

/**
 * Remembers who keeps failing. Such a one is skipped for a while; then one call at a time tries it,
 * until it answers. In this process alone: another finds out for itself.
 *
 * A caller can have calls fail at will, such as by what takes longer than anybody waits: what fails for one owner
 * alone is skipped for that one, and for everybody what fails for two. So is what asks for a pause: a
 * provider may have no room for one owner's large request, and room for everybody else's.
 */
export class CircuitBreaker {
  readonly #states = new Map<string, State>();

  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether to ask somebody else first. Who asks all the same is the one who tries. */
  isOpen(target: Target, owner: string): boolean {
    const states = keysOf(target, owner).map((key) => this.#states.get(key));
    return states.some((state) => state && untilOf(state) > this.#now());
  }

  /** Says that a call is on its way: while it is, others still skip one that was failing. */
  probing(target: Target, owner: string): void {
    for (const key of keysOf(target, owner)) {
      const state = this.#states.get(key);
      if (state === undefined || state.skipUntil === 0) continue;
      // Who has tried it and failed keeps nobody else from it.
      if (state.owners.includes(owner)) continue;
      this.#set(key, { ...state, triedUntil: this.#now() + SKIP_MS });
    }
  }

  succeeded(target: Target, owner: string): void {
    for (const key of keysOf(target, owner)) this.#states.delete(key);
  }

  failed(target: Target, owner: string, error: ProviderError): void {
    if (OF_REQUEST.has(error.failure)) return;
    const name = isOfProvider(error) ? target.provider : nameOf(target);
    const pauseMs = Math.min(error.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
    this.#count(name, owner, { leastOwners: 2, pauseMs: Math.min(pauseMs, SKIP_MS) });
    this.#count(ofOwner(name, owner), owner, { leastOwners: 1, pauseMs });
  }

  #count(
    key: string,
    owner: string,
    { leastOwners, pauseMs }: { readonly leastOwners: number; readonly pauseMs: number },
  ): void {
    const known = this.#states.get(key);
    const failures = (known?.failures ?? 0) + 1;
    const owners = [...new Set([...(known?.owners ?? []), owner])].slice(0, 2);
    const isAlone = owners.length < leastOwners;
    const skipMs = isAlone ? 0 : Math.max(failures >= FAILURES ? SKIP_MS : 0, pauseMs);
    // What was under way already when others had it skipped does not end that; nor does the call that
    // tries it, of which the next one is to be the only one again.
    const before = known?.skipUntil ?? 0;
    const skipUntil = skipMs === 0 ? before : Math.max(before, this.#now() + skipMs);
    // Nobody alone goes on with what two have begun.
    this.#set(key, { failures, owners: skipMs > 0 ? [] : owners, skipUntil, triedUntil: 0 });
  }

  #set(key: string, state: State): void {
    setBounded(this.#states, key, state, MAX_KNOWN);
  }
}

const untilOf = ({ skipUntil, triedUntil }: State): number => Math.max(skipUntil, triedUntil);

/**
 * What a key may be refused with for one call or one model alone: it would cost more than is left, it is not let
 * use that model, or something before the provider does not like what was said.
 */
const OF_CALL: readonly unknown[] = [402, 403];

/**
 * Whether it is a fault of the whole provider. What else goes wrong is one model's matter, also an answer
 * that breaks off when it has begun: behind one provider can be many.
 */
const isOfProvider = ({ failure, status }: ProviderError): boolean =>
  failure === 'bad_key'
    ? !OF_CALL.includes(status)
    : failure === 'unreachable' && status === undefined;

const nameOf = ({ model, provider }: Target): string => `${provider}/${model}`;

const ofOwner = (name: string, owner: string): string => `${name} of ${owner}`;

const keysOf = (target: Target, owner: string): readonly string[] =>
  [nameOf(target), target.provider].flatMap((name) => [name, ofOwner(name, owner)]);
