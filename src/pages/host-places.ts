/** So many at once for each host; who comes later waits in turn. Those that wait are bounded by their callers. */
export class HostPlaces {
  readonly #perHost: number;
  readonly #hosts = new Map<string, { taken: number; readonly waiting: Set<() => void> }>();

  constructor(perHost: number) {
    this.#perHost = perHost;
  }

  /** @returns what gives the place back. @throws the signal's reason when it aborts before. */
  async take(host: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const places = this.#hosts.get(host) ?? { taken: 0, waiting: new Set() };
    this.#hosts.set(host, places);
    if (places.taken < this.#perHost) places.taken++;
    else await this.#next(places.waiting, signal);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      const [next] = places.waiting;
      // The place goes from hand to hand, so that nobody who comes now gets in between.
      if (next) next();
      else if (--places.taken === 0) this.#hosts.delete(host);
    };
  }

  #next(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        waiting.delete(begin);
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        waiting.delete(begin);
        reject(signal.reason instanceof Error ? signal.reason : new Error('Given up'));
      };
      waiting.add(begin);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }
}
