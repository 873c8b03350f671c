import { setBounded } from '../../lib/bounded-map.js';
import type { ProviderError, ProviderFailure } from '../completion/provider-error.js';
import type { ProviderName } from '../completion/provider-names.js';

/** Consecutive failures that open the circuit, and the milliseconds it stays open. */
const FAILURES = 3;
const SKIP_MS = 30_000;
/** Milliseconds for which a provider's retry-after is honored, for the owner who received it. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
const MAX_KNOWN = 10_000;

export interface Target {
  readonly provider: ProviderName;
  readonly model: string;
  /** True for a call by the owner's own key, whose failures concern no other call. */
  readonly isOwn?: boolean | undefined;
}

interface State {
  readonly failures: number;
  /** Owners of the failed calls: at most two are distinguished. */
  readonly owners: readonly string[];
  readonly skipUntil: number;
  /** Time until which a probe may be in flight. */
  readonly triedUntil: number;
}

/** Failures caused by the request, which do not count against the provider. */
const OF_REQUEST: ReadonlySet<ProviderFailure> = new Set(['too_long', 'refused', 'bad_request']);

/**
 * Opens a circuit when a model or provider keeps failing, then admits one probe at a time. Local to this
 * process. Callers can cause failures at will, so one owner's failures or retry-after open the circuit for
 * that owner only; it takes two owners to open it for all.
 */
export class CircuitBreaker {
  readonly #states = new Map<string, State>();

  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Reports whether the circuit is open. A caller that proceeds anyway is the probe. */
  isOpen(target: Target, owner: string): boolean {
    const states = keysOf(target, owner).map((key) => this.#states.get(key));
    return states.some((state) => state && untilOf(state) > this.#now());
  }

  /** Records a call in flight; until it ends, other calls still skip a target that was failing. */
  probing(target: Target, owner: string): void {
    for (const key of keysOf(target, owner)) {
      const state = this.#states.get(key);
      if (state === undefined || state.skipUntil === 0) continue;
      // An owner whose own probe failed must not block the probes of others.
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
    if (!target.isOwn) {
      this.#count(name, owner, { leastOwners: 2, pauseMs: Math.min(pauseMs, SKIP_MS) });
    }
    this.#count(nameFor(owner, name, target), owner, { leastOwners: 1, pauseMs });
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
    // Neither the failure of a call begun before the circuit opened nor that of the probe shortens the open
    // period; afterwards again only one probe is allowed.
    const before = known?.skipUntil ?? 0;
    const skipUntil = skipMs === 0 ? before : Math.max(before, this.#now() + skipMs);
    // An opened circuit needs two owners again to be extended for all.
    this.#set(key, { failures, owners: skipMs > 0 ? [] : owners, skipUntil, triedUntil: 0 });
  }

  #set(key: string, state: State): void {
    setBounded(this.#states, key, state, MAX_KNOWN);
  }
}

const untilOf = ({ skipUntil, triedUntil }: State): number => Math.max(skipUntil, triedUntil);

/** Statuses of a key that is refused for one call or model: too expensive, not allowed or filtered. */
const OF_CALL: readonly unknown[] = [402, 403];

/**
 * Reports whether the whole provider failed. Other failures, also a broken answer, count against one model,
 * because a provider may be a gateway to many.
 */
const isOfProvider = ({ failure, status }: ProviderError): boolean =>
  failure === 'bad_key'
    ? !OF_CALL.includes(status)
    : failure === 'unreachable' && status === undefined;

const nameOf = ({ model, provider }: Target): string => `${provider}/${model}`;

const nameFor = (owner: string, name: string, { isOwn }: Target): string =>
  isOwn ? `${name} by the key of ${owner}` : `${name} of ${owner}`;

function keysOf(target: Target, owner: string): readonly string[] {
  const names = [nameOf(target), target.provider];
  return target.isOwn
    ? names.map((name) => nameFor(owner, name, target))
    : names.flatMap((name) => [name, nameFor(owner, name, target)]);
}
