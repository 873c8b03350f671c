interface Flight<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** Runs work once for all concurrent callers of a key, and ends it when all of them have left. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** Returns the result of the run for this key, shared by all callers. @throws the signal's reason, or the work's error */
  async run(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.waiting++;
    let leave: (() => void) | undefined;
    const left = new Promise<never>((_resolve, reject) => {
      leave = () => reject(signal.reason instanceof Error ? signal.reason : new Error('Left'));
      signal.addEventListener('abort', leave, { once: true });
    });
    try {
      return await Promise.race([flight.promise, left]);
    } finally {
      if (leave) signal.removeEventListener('abort', leave);
      if (--flight.waiting === 0) {
        this.#forget(key, flight);
        flight.controller.abort();
      }
    }
  }

  /** Returns how many callers wait for a key. */
  waitingFor(key: string): number {
    return this.#flights.get(key)?.waiting ?? 0;
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const flight = { promise: work(controller.signal), controller, waiting: 0 };
    this.#flights.set(key, flight);
    // A caller that arrives after the end starts new work.
    const forget = () => this.#forget(key, flight);
    flight.promise.then(forget, forget);
    return flight;
  }

  #forget(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}
