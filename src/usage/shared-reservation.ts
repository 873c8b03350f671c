/**
 * Tokens that the database holds for a user under one id, of which calls of that user take their
 * parts. It is over when no call has a part in it and none will take one.
 */
export class SharedReservation {
  /** Calls that have taken a part; the first is the one that it was made for. */
  #taken = 1;
  #underWay = 1;
  #takenLately = true;
  #retired = false;
  #free: number;

  /**
   * @param limit the monthly tokens that it was admitted under.
   * @param extra what it holds besides the part of the first call.
   * @param until milliseconds since the epoch, after which no call takes a part any more.
   */
  constructor(
    readonly id: string,
    private readonly limit: number,
    extra: number,
    private readonly until: number,
  ) {
    this.#free = extra;
  }

  get taken(): number {
    return this.#taken;
  }

  get over(): boolean {
    return this.#underWay === 0 && (this.#retired || this.#free === 0);
  }

  /** Takes a part, unless there is not as much in it for a call under this limit. */
  take(tokens: number, limit: number): boolean {
    const open = !this.#retired && Date.now() < this.until && limit === this.limit;
    if (!open || tokens > this.#free) return false;
    this.#free -= tokens;
    this.#taken++;
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
