interface UnderWay<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** Work that several wait for is done once; when all of them have left, it ends. */
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

  /** How many wait for it. */
  waitingFor(key: string): number {
    return this.#underWay.get(key)?.waiting ?? 0;
  }

  #begin(key: string, work: (signal: AbortSignal) => Promise<T>): UnderWay<T> {
    const controller = new AbortController();
    const shared = { promise: work(controller.signal), controller, waiting: 0 };
    this.#underWay.set(key, shared);
    // Who comes after it has ended begins anew.
    const forget = () => this.#forget(key, shared);
    shared.promise.then(forget, forget);
    return shared;
  }

  #forget(key: string, shared: UnderWay<T>): void {
    if (this.#underWay.get(key) === shared) this.#underWay.delete(key);
  }
}
