import { UnavailableError } from './errors.js';

/** More than these wait for a server that is not keeping up. */
const MAX_WAITING = 10_000;

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets what is asked for one by one be done many at a time: while one batch is under way the next
 * one gathers. Nobody waits for a batch to fill.
 */
export class Batcher<Item, Result> {
  #waiting: Waiting<Item, Result>[] = [];
  #running = false;

  readonly #run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #maxItems: number;

  /**
   * @param run does a batch; its results are in the order of the items.
   * @param maxItems in one batch.
   */
  constructor(run: (items: readonly Item[]) => Promise<readonly Result[]>, maxItems: number) {
    this.#run = run;
    this.#maxItems = maxItems;
  }

  /** @throws UnavailableError when too many wait; else what the batch failed with. */
  add(item: Item): Promise<Result> {
    if (this.#waiting.length >= MAX_WAITING) {
      return Promise.reject(new UnavailableError('Too many requests wait for the database'));
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
      if (results.length !== batch.length) throw new RangeError('a batch lost some of its results');
      // The lengths are the same.
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
