export interface ReservationTerms {
  readonly id: string;
  /** Monthly token limit at the time of admission. */
  readonly limit: number;
  /** Number of further calls that it was made for. */
  readonly callsAhead: number;
  /** Tokens beyond the first call's share: for all further calls, or 0. */
  readonly extra: number;
  /** Unix milliseconds after which no call takes a share any more. */
  readonly until: number;
}

/**
 * Tokens that the database holds for a user under one id, shared by several calls; the first has its share
 * from the beginning. It ends when no call has a share and none will take one.
 */
export class SharedReservation {
  #inFlight = 1;
  #takenLately = true;
  #retired = false;
  #free: number;

  constructor(readonly terms: ReservationTerms) {
    this.#free = terms.extra;
  }

  get over(): boolean {
    return this.#inFlight === 0 && (this.#retired || this.#free === 0);
  }

  /** True if most of the advance tokens are in use. */
  get low(): boolean {
    return !this.#retired && this.terms.extra > 0 && this.#free < this.terms.extra / 3;
  }

  /** Takes a share, if enough is left and the limit is unchanged. */
  take(tokens: number, limit: number): boolean {
    const open = !this.#retired && Date.now() < this.terms.until;
    if (!open || limit !== this.terms.limit || tokens > this.#free) return false;
    this.#free -= tokens;
    this.#inFlight++;
    this.#takenLately = true;
    return true;
  }

  /** Ends the share of a call, and returns unused tokens. */
  end(unused = 0): void {
    this.#inFlight--;
    this.#free += unused;
  }

  /** Closes the reservation for further calls. */
  retire(): void {
    this.#retired = true;
  }

  /** Reports whether a share was taken since the last check. */
  wasTakenLately(): boolean {
    const lately = this.#takenLately;
    this.#takenLately = false;
    return lately;
  }
}
