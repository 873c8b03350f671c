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

/** A source of pieces that can be paused. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

/** Writes the pieces of a source to a sink, and pauses the source while the pace or the sink is behind. */
export class PacedWriter {
  readonly #source: Pausable;
  readonly #sink: Writable;
  readonly #pace: BytePace;
  #holds = 0;

  constructor(source: Pausable, sink: Writable, pace: BytePace) {
    this.#source = source;
    this.#sink = sink;
    this.#pace = pace;
  }

  write(piece: Buffer): void {
    const waitMs = this.#pace.take(piece.length);
    if (waitMs > 0) {
      this.#hold();
      setTimeout(this.#release, waitMs).unref();
    }
    if (this.#sink.writable && !this.#sink.write(piece)) {
      this.#hold();
      this.#sink.once('drain', this.#release);
    }
  }

  #hold(): void {
    this.#holds++;
    this.#source.pause();
  }

  readonly #release = (): void => {
    this.#holds--;
    if (this.#holds === 0) this.#source.resume();
  };
}

/** Copies a stream at a pace, as fast as the receiver reads, and ends the receiver with it. */
export function pipePaced(source: Readable, sink: Writable, pace: BytePace): void {
  const writer = new PacedWriter(source, sink, pace);
  source.on('data', (piece: Buffer) => writer.write(piece));
  source.once('end', () => sink.end());
}
