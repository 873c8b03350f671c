/**
 * A limit on concurrent requests to each host; further callers queue in order. Callers must bound the
 * queue's length.
 */
export class HostPlaces {
  readonly #perHost: number;
  readonly #hosts = new Map<string, { taken: number; readonly waiting: Set<() => void> }>();

  constructor(perHost: number) {
    this.#perHost = perHost;
  }

  /**
   * Waits for a place and returns the function that frees it. @throws the signal's reason if the signal
   * aborts first.
   */
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
      // The place passes directly to the next in the queue, so that a newcomer cannot overtake.
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
