/** Runs the works of one key one after the other, in the order of their requests; those of other keys at once. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    // The next work runs whether or not the one before has failed.
    const done = before === undefined ? work() : before.then(work, work);
    this.#last.set(key, done);
    try {
      return await done;
    } finally {
      if (this.#last.get(key) === done) this.#last.delete(key);
    }
  }
}
