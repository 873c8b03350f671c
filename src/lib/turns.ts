import { setBounded } from './bounded-map.js';

/** A caller that waits for a turn. */
export interface Asker {
  /** Owner of the work; turns are shared fairly between owners. */
  readonly owner: string;
  /** True if a client waits for the work; false for background work. */
  readonly isUrgent: boolean;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
}

/** Ends a turn and starts the next one; repeated calls have no effect. */
export type EndTurn = () => void;

interface Waiting extends Asker {
  readonly begin: () => void;
}

/** Every fourth turn prefers work that is not urgent, so that urgent work cannot starve it. */
const PATIENT_TURN = 4;

/** Most owners whose last turn is remembered; unknown owners go first. */
const MAX_OWNERS = 1_000;

/**
 * Limits concurrent work. One owner has at most half of the turns, or `perOwner`, so that hanging work
 * does not block other owners. Urgent work goes first; then the owner with the fewest turns, then the one
 * whose last turn is the oldest.
 */
export class Turns {
  readonly #atOnce: number;
  readonly #perOwner: number;
  /** Number of current turns by owner. */
  readonly #taken = new Map<string, number>();
  /** Sequence number of the last turn by owner. */
  readonly #last = new Map<string, number>();
  /** Waiting callers in order of arrival; limited by the callers themselves, such as a worker's slots. */
  readonly #waiting = new Set<Waiting>();
  #count = 0;
  #given = 0;

  constructor(atOnce: number, perOwner = Math.ceil(atOnce / 2)) {
    this.#atOnce = atOnce;
    this.#perOwner = perOwner;
  }

  /** Number of current turns, and of waiting callers. */
  get state(): { readonly taken: number; readonly waiting: number } {
    return { taken: this.#count, waiting: this.#waiting.size };
  }

  /** Returns the number of an owner's waiting callers. */
  waitingOf(owner: string): number {
    let count = 0;
    for (const asker of this.#waiting) if (asker.owner === owner) count++;
    return count;
  }

  /** Runs work in its turn. @throws the signal's reason if it aborts while waiting. */
  async run<T>(asker: Asker, work: (endTurn: EndTurn) => Promise<T>): Promise<T> {
    const endTurn = await this.#turnOf(asker);
    try {
      return await work(endTurn);
    } finally {
      endTurn();
    }
  }

  #turnOf(asker: Asker): Promise<EndTurn> {
    const { owner, signal } = asker;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const giveUp = () => {
        this.#waiting.delete(waiting);
        reject(asError(signal?.reason));
      };
      const waiting: Waiting = {
        ...asker,
        begin: () => {
          signal?.removeEventListener('abort', giveUp);
          resolve(this.#end(owner));
        },
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(waiting);
      this.#giveTurns();
    });
  }

  #giveTurns(): void {
    while (this.#count < this.#atOnce) {
      const next = this.#next();
      if (!next) return;
      this.#waiting.delete(next);
      this.#count++;
      this.#taken.set(next.owner, this.#takenBy(next) + 1);
      setBounded(this.#last, next.owner, ++this.#given, MAX_OWNERS);
      next.begin();
    }
  }

  #next(): Waiting | undefined {
    const able = [...this.#waiting].filter((asker) => this.#takenBy(asker) < this.#perOwner);
    const isPatientTurn = (this.#given + 1) % PATIENT_TURN === 0;
    const preferred = able.filter(({ isUrgent }) => isUrgent !== isPatientTurn);
    return this.#fairest(preferred) ?? this.#fairest(able);
  }

  /** Returns the first caller of the owner with the fewest turns. */
  #fairest(askers: readonly Waiting[]): Waiting | undefined {
    let fairest: Waiting | undefined;
    for (const asker of askers) if (!fairest || this.#compare(asker, fairest) < 0) fairest = asker;
    return fairest;
  }

  #compare(one: Waiting, other: Waiting): number {
    const lastOf = ({ owner }: Waiting) => this.#last.get(owner) ?? 0;
    return this.#takenBy(one) - this.#takenBy(other) || lastOf(one) - lastOf(other);
  }

  #takenBy({ owner }: Asker): number {
    return this.#taken.get(owner) ?? 0;
  }

  #end(owner: string): EndTurn {
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#count--;
      const left = (this.#taken.get(owner) ?? 0) - 1;
      if (left > 0) this.#taken.set(owner, left);
      else this.#taken.delete(owner);
      this.#giveTurns();
    };
  }
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('Aborted while waiting for a turn: retry');
