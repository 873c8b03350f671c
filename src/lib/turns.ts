import { setBounded } from './bounded-map.js';

/** Who wants a turn. */
export interface Asker {
  /** Whose work it is: what one owner asks for is in nobody else's way. */
  readonly owner: string;
  /** Somebody waits for it; the rest is the platform's own. */
  readonly isUrgent: boolean;
  /** Gives up waiting. */
  readonly signal?: AbortSignal | undefined;
}

/** Lets whoever waits next begin. Again it does nothing. */
export type EndTurn = () => void;

interface Waiting extends Asker {
  readonly begin: () => void;
}

/** One turn in so many goes past those who are urgent, so that these cannot keep off the rest. */
const PATIENT_TURN = 4;

/** Owners of whom is known when they had their last turn; the others go before them. */
const MAX_OWNERS = 1_000;

/**
 * Lets so much go on at a time. One owner has at most half of the turns, or as many as it is told, so that what
 * hangs of theirs never holds up the others. Who is urgent goes first; of these, the owner with the fewest turns, and
 * then the one whose last turn was longest ago.
 */
export class Turns {
  readonly #atOnce: number;
  readonly #perOwner: number;
  /** Turns that each owner has. */
  readonly #taken = new Map<string, number>();
  /** The number of each owner's last turn. */
  readonly #last = new Map<string, number>();
  /** In the order in which they came. Its bound is that of whoever asks: a worker's slots. */
  readonly #waiting = new Set<Waiting>();
  #count = 0;
  #given = 0;

  constructor(atOnce: number, perOwner = Math.ceil(atOnce / 2)) {
    this.#atOnce = atOnce;
    this.#perOwner = perOwner;
  }

  /** How many have their turn, and how many wait for one. */
  get state(): { readonly taken: number; readonly waiting: number } {
    return { taken: this.#count, waiting: this.#waiting.size };
  }

  /** How many of an owner's wait for one. */
  waitingOf(owner: string): number {
    let count = 0;
    for (const asker of this.#waiting) if (asker.owner === owner) count++;
    return count;
  }

  /** Does the work in its turn. @throws the signal's reason when it aborts before. */
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

  /** The first of those whose owner has had the least. */
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
  reason instanceof Error ? reason : new Error('Given up while it waited for its turn');
