/**
 * The clock of one attempt. Its signal aborts on a timeout or with the caller; `timedOut` distinguishes them.
 * Call `stop` at the end of the attempt.
 */
export class AttemptClock {
  readonly #controller = new AbortController();
  readonly #leave = () => this.#controller.abort();
  readonly #caller: AbortSignal;
  readonly #whole: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  #timedOut = false;

  /** `ms` until the first response, `wholeMs` for the whole attempt. */
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

  /** Pauses the timeout while the client reads. */
  pause(): void {
    clearTimeout(this.#next);
  }

  /** Restarts the timeout for the next response. */
  expect(ms: number): void {
    clearTimeout(this.#next);
    this.#next = this.#in(ms);
  }

  /** Restarts the running timeout in full: the provider has shown that it is at work. */
  extend(): void {
    this.#next?.refresh();
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
