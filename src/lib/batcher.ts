import { UnavailableError } from './errors.js';

/** Maximum number of items that wait for a slow server. */
const MAX_WAITING = 10_000;

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Batches items: while a batch is in flight, the next one collects; none waits to fill. */
export class Batcher<Item, Result> {
  #waiting: Waiting<Item, Result>[] = [];
  #running = false;

  readonly #run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #maxItems: number;

  /** @param run executes a batch, with results in the order of its items. */
  constructor(run: (items: readonly Item[]) => Promise<readonly Result[]>, maxItems: number) {
    this.#run = run;
    this.#maxItems = maxItems;
  }

  /** Adds an item to the next batch. @throws UnavailableError if too many wait; the batch's error */
  add(item: Item): Promise<Result> {
    if (this.#waiting.length >= MAX_WAITING) {
      return Promise.reject(
        new UnavailableError('Too many requests wait for the database: retry later'),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#running) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) await this.#runOne(this.#waiting.splice(0, this.#maxItems));
    this.#running = false;
  }

  async #runOne(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#run(batch.map(({ item }) => item));
      if (results.length !== batch.length)
        throw new RangeError('a batch returned the wrong number of results');
      // The check above ensures equal lengths.
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
