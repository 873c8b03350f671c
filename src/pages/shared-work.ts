interface UnderWay<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** Shares work between callers with the same key; aborts the work when all of them have left. */
export class SharedWork<T> {
  readonly #underWay = new Map<string, UnderWay<T>>();

  /** @throws what the work throws; the signal's reason when it aborts. */
  async run(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const shared = this.#underWay.get(key) ?? this.#begin(key, work);
    shared.waiting++;
    let leave: (() => void) | undefined;
    const left = new Promise<never>((_resolve, reject) => {
      leave = () => reject(signal.reason instanceof Error ? signal.reason : new Error('Left'));
      signal.addEventListener('abort', leave, { once: true });
    });
    try {
      return await Promise.race([shared.promise, left]);
    } finally {
      if (leave) signal.removeEventListener('abort', leave);
      if (--shared.waiting === 0) {
        this.#forget(key, shared);
        shared.controller.abort();
      }
    }
  }

  /** Returns the number of callers that wait for the work. */
  waitingFor(key: string): number {
    return this.#underWay.get(key)?.waiting ?? 0;
  }

  #begin(key: string, work: (signal: AbortSignal) => Promise<T>): UnderWay<T> {
    const controller = new AbortController();
    const shared = { promise: work(controller.signal), controller, waiting: 0 };
    this.#underWay.set(key, shared);
    // A caller after the end starts new work.
    const forget = () => this.#forget(key, shared);
    shared.promise.then(forget, forget);
    return shared;
  }

  #forget(key: string, shared: UnderWay<T>): void {
    if (this.#underWay.get(key) === shared) this.#underWay.delete(key);
  }
}
