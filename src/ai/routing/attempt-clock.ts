/**
 * The time of one attempt at a provider. Its signal aborts when the time is up, or when the caller
 * has left; `timedOut` tells which. To be stopped at the attempt's end.
 */
export class AttemptClock {
  readonly #controller = new AbortController();
  readonly #leave = () => this.#controller.abort();
  readonly #caller: AbortSignal;
  readonly #whole: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  #timedOut = false;

  /**
   * @param ms until the first sign of life.
   * @param wholeMs for everything, where there are more.
   */
  constructor(caller: AbortSignal, ms: number, wholeMs?: number) {
    this.#caller = caller;
    this.#next = this.#in(ms);
    if (wholeMs !== undefined) this.#whole = this.#in(wholeMs);
    if (caller.aborted) this.#leave();
    else caller.addEventListener('abort', this.#leave, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Somebody else's turn: what they take does not count. */
  pause(): void {
    clearTimeout(this.#next);
  }

  /** Milliseconds until the next sign of life. */
  expect(ms: number): void {
    clearTimeout(this.#next);
    this.#next = this.#in(ms);
  }

  stop(): void {
    clearTimeout(this.#next);
    clearTimeout(this.#whole);
    this.#caller.removeEventListener('abort', this.#leave);
  }

  #in(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timedOut = true;
      this.#controller.abort();
    }, ms);
  }
}
