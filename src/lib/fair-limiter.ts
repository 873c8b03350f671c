import { setBounded } from './bounded-map.js';

export interface Caller {
  /** The key between which slots are shared fairly: a user, an address, a host. */
  readonly owner: string;
  /** True for work whose result a caller awaits; false by default. */
  readonly isUrgent?: boolean;
  /** Ends the wait for a slot. */
  readonly signal?: AbortSignal | undefined;
}

/** Frees a slot; a second call does nothing. */
export type Release = () => void;

export interface LimiterBounds {
  /** Slots of all owners together. */
  readonly atOnce: number;
  /** Slots of one owner; half of all by default, so that hanging work of one owner does not block others. */
  readonly perOwner?: number;
  /** Bounds of the queue; without them, the callers bound it. */
  readonly queue?: QueueBounds;
}

export interface QueueBounds {
  /** Waiting callers of all owners: when full, the owner with the most waiting loses its last. */
  readonly max?: number;
  readonly perOwner?: number;
  /** Milliseconds. */
  readonly maxWaitMs?: number;
  /**
   * Makes the error of a caller that finds no place in the queue, loses it, or waits too long.
   * @param bound callers that may wait: of the owner, or of all.
   */
  readonly refusal: (bound: number) => Error;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: unknown) => void;
}

type Queue = 'urgent' | 'other';

interface Owner extends Readonly<Record<Queue, Set<Waiting>>> {
  readonly name: string;
  running: number;
}

/** Every fourth slot goes to a caller that is not urgent, so that urgent ones cannot starve the rest. */
const NOT_URGENT_EVERY = 4;

/** Maximum number of owners whose last start is remembered; forgotten owners have priority. */
const MAX_OWNERS = 1_000;

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('The wait for a slot was aborted');

const waitingOf = ({ other, urgent }: Owner): number => urgent.size + other.size;

/** Bounds what runs at a time, and queues the rest: urgent callers, then owners with the fewest slots. */
export class FairLimiter {
  readonly #atOnce: number;
  readonly #perOwner: number;
  readonly #queue: QueueBounds | undefined;
  /** Owners that run or wait. */
  readonly #owners = new Map<string, Owner>();
  readonly #lastStart = new Map<string, number>();
  #running = 0;
  #waiting = 0;
  #started = 0;

  constructor({ atOnce, perOwner = Math.ceil(atOnce / 2), queue }: LimiterBounds) {
    this.#atOnce = atOnce;
    this.#perOwner = perOwner;
    this.#queue = queue;
  }

  get state(): { readonly running: number; readonly waiting: number } {
    return { running: this.#running, waiting: this.#waiting };
  }

  /** Runs the work in a slot, which it may release before it ends. @throws as `acquire`, and as the work */
  async run<T>(caller: Caller, work: (release: Release) => Promise<T>): Promise<T> {
    const release = await this.acquire(caller);
    try {
      return await work(release);
    } finally {
      release();
    }
  }

  /** Waits for a slot. @throws the signal's reason when it aborts before; the queue's refusal. */
  async acquire({ owner: name, isUrgent = false, signal }: Caller): Promise<Release> {
    signal?.throwIfAborted();
    const owner = this.#owners.get(name) ?? newOwner(name);
    // No waiting caller could use a free slot: it would have been given one.
    if (this.#running < this.#atOnce && owner.running < this.#perOwner) this.#start(owner);
    else await this.#wait(owner, isUrgent ? 'urgent' : 'other', signal);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#running--;
      owner.running--;
      this.#removeIdle(owner);
      this.#startWaiting();
    };
  }

  #start(owner: Owner): void {
    this.#owners.set(owner.name, owner);
    this.#running++;
    owner.running++;
    setBounded(this.#lastStart, owner.name, ++this.#started, MAX_OWNERS);
  }

  #wait(owner: Owner, queue: Queue, signal: AbortSignal | undefined): Promise<void> {
    this.#makeRoom(owner);
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        owner[queue].delete(waiting);
        this.#waiting--;
      };
      const waiting: Waiting = {
        start: () => {
          leave();
          this.#start(owner);
          resolve();
        },
        refuse: (error) => {
          leave();
          this.#removeIdle(owner);
          reject(asError(error));
        },
      };
      const abort = () => waiting.refuse(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      const { max = Infinity, maxWaitMs, refusal } = this.#queue ?? {};
      const timer = maxWaitMs && setTimeout(() => waiting.refuse(refusal?.(max)), maxWaitMs);
      this.#owners.set(owner.name, owner);
      owner[queue].add(waiting);
      this.#waiting++;
    });
  }

  /** Evicts a request of the owner with the most waiting. @throws the refusal if no owner has more waiting */
  #makeRoom(owner: Owner): void {
    if (!this.#queue) return;
    const { max = Infinity, perOwner = Infinity, refusal } = this.#queue;
    if (waitingOf(owner) >= perOwner) throw refusal(perOwner);
    if (this.#waiting < max) return;
    const [most] = [...this.#owners.values()].sort((a, b) => waitingOf(b) - waitingOf(a));
    if (!most || waitingOf(most) <= waitingOf(owner) + 1) throw refusal(max);
    [...most.urgent, ...most.other].at(-1)?.refuse(refusal(max));
  }

  #startWaiting(): void {
    while (this.#running < this.#atOnce) {
      const isUrgentFirst = (this.#started + 1) % NOT_URGENT_EVERY !== 0;
      const [first, second] = isUrgentFirst
        ? (['urgent', 'other'] as const)
        : (['other', 'urgent'] as const);
      const next = this.#next(first) ?? this.#next(second);
      if (!next) return;
      next.start();
    }
  }

  #next(queue: Queue): Waiting | undefined {
    let next: Owner | undefined;
    for (const owner of this.#owners.values()) {
      if (owner[queue].size === 0 || owner.running >= this.#perOwner) continue;
      if (!next || this.#compare(owner, next) < 0) next = owner;
    }
    const [first] = next?.[queue] ?? [];
    return first;
  }

  #compare(one: Owner, other: Owner): number {
    const lastOf = ({ name }: Owner) => this.#lastStart.get(name) ?? 0;
    return one.running - other.running || lastOf(one) - lastOf(other);
  }

  #removeIdle(owner: Owner): void {
    if (owner.running === 0 && waitingOf(owner) === 0) this.#owners.delete(owner.name);
  }
}

const newOwner = (name: string): Owner => ({
  name,
  running: 0,
  urgent: new Set(),
  other: new Set(),
});
