/** Bytes of overhead for each cached answer. */
const OVERHEAD = 200;

interface Kept<T> {
  readonly value: T;
  readonly until: number;
  readonly bytes: number;
}

/** A cache of answers, bounded in bytes, that evicts the oldest first. */
export class PageCache<T> {
  readonly #kept = new Map<string, Kept<T>>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): T | undefined {
    const found = this.#kept.get(key);
    if (found === undefined) return undefined;
    if (found.until > performance.now()) return found.value;
    this.#remove(key);
    return undefined;
  }

  /** Stores an answer for `ms`, unless that is 0 or the answer is larger than the whole cache. */
  set(key: string, value: T, ms: number): void {
    this.#remove(key);
    if (ms <= 0) return;
    // A character needs at most two bytes.
    const bytes = (JSON.stringify(value).length + key.length) * 2 + OVERHEAD;
    if (bytes > this.#maxBytes) return;
    this.#kept.set(key, { value, until: performance.now() + ms, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }
}
