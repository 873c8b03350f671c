import type { Readable, Writable } from 'node:stream';

/** A bound on bytes a second that several streams share, with bursts of one second. */
export class BytePace {
  readonly #perMs: number;
  readonly #burst: number;
  readonly #now: () => number;
  #left: number;
  #at: number;

  constructor(bytesPerSecond: number, now: () => number = () => performance.now()) {
    this.#perMs = bytesPerSecond / 1_000;
    this.#burst = bytesPerSecond;
    this.#left = bytesPerSecond;
    this.#now = now;
    this.#at = now();
  }

  /** Counts bytes. @returns milliseconds to wait before more may be sent. */
  take(bytes: number): number {
    const now = this.#now();
    this.#left = Math.min(this.#burst, this.#left + (now - this.#at) * this.#perMs) - bytes;
    this.#at = now;
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#perMs);
  }
}

/** Copies a stream at a pace, as fast as the receiver reads, and ends the receiver with it. */
export function pipePaced(source: Readable, sink: Writable, pace: BytePace): void {
  let holds = 0;
  const release = () => {
    holds--;
    if (holds === 0) source.resume();
  };
  const hold = () => {
    holds++;
    source.pause();
  };
  source.on('data', (piece: Buffer) => {
    const waitMs = pace.take(piece.length);
    if (waitMs > 0) {
      hold();
      setTimeout(release, waitMs).unref();
    }
    if (sink.writable && !sink.write(piece)) {
      hold();
      sink.once('drain', release);
    }
  });
  source.once('end', () => sink.end());
}
