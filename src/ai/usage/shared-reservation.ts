/** How a reservation was made. */
export interface ReservationTerms {
  readonly id: string;
  /** The monthly tokens that it was admitted under. */
  readonly limit: number;
  /** Calls that it was to be enough for, besides the first. */
  readonly callsAhead: number;
  /** Tokens that it holds besides the part of the first call: for all of those, or none. */
  readonly extra: number;
  /** Milliseconds since the epoch, after which no call takes a part any more. */
  readonly until: number;
}

/**
 * Tokens that the database holds for a user under one id, of which calls of that user take their
 * parts; the first call has its part from the beginning. It is over when no call has a part in it
 * and none will take one.
 */
export class SharedReservation {
  #underWay = 1;
  #takenLately = true;
  #retired = false;
  #free: number;

  constructor(readonly terms: ReservationTerms) {
    this.#free = terms.extra;
  }

  get over(): boolean {
    return this.#underWay === 0 && (this.#retired || this.#free === 0);
  }

  /** Whether most of what was held ahead is taken. */
  get low(): boolean {
    return !this.#retired && this.terms.extra > 0 && this.#free < this.terms.extra / 3;
  }

  /** Takes a part, unless there is not as much in it for a call under this limit. */
  take(tokens: number, limit: number): boolean {
    const open = !this.#retired && Date.now() < this.terms.until;
    if (!open || limit !== this.terms.limit || tokens > this.#free) return false;
    this.#free -= tokens;
    this.#underWay++;
    this.#takenLately = true;
    return true;
  }

  /** A call that took a part has ended. @param unused what it did not use at all. */
  end(unused = 0): void {
    this.#underWay--;
    this.#free += unused;
  }

  /** No call takes a part any more. */
  retire(): void {
    this.#retired = true;
  }

  /** Whether a part was taken since this was asked last. */
  wasTakenLately(): boolean {
    const lately = this.#takenLately;
    this.#takenLately = false;
    return lately;
  }
}
