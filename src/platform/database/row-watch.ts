import type { TableChanges } from './row-changes.js';

/** Between two looks where nothing is heard, in milliseconds. */
const LOOK_MS = 250;

/** All rows that were awaited when it began. */
interface Look<State> {
  /** Of the changes by then. */
  readonly count: number;
  readonly keys: ReadonlySet<string>;
  readonly states: Promise<ReadonlyMap<string, State>>;
}

/**
 * Waits for what becomes of rows, however many, with one statement for all of them at a time: as soon
 * as something is heard of their table, and from time to time.
 */
export class RowWatch<State> {
  readonly #changes: TableChanges;
  readonly #statesOf: (keys: readonly string[]) => Promise<ReadonlyMap<string, State>>;
  readonly #awaited = new Map<string, number>();
  #look: Look<State> | undefined;

  constructor(
    changes: TableChanges,
    statesOf: (keys: readonly string[]) => Promise<ReadonlyMap<string, State>>,
  ) {
    this.#changes = changes;
    this.#statesOf = statesOf;
  }

  /**
   * @param isOver of the state that a row has; undefined where there is no such row.
   * @returns the first one that is, or the last that was seen before the signal aborted.
   * @throws what the look throws, and `isOver`.
   */
  async until(
    key: string,
    isOver: (state: State | undefined) => boolean,
    signal: AbortSignal,
  ): Promise<State | undefined> {
    this.#awaited.set(key, (this.#awaited.get(key) ?? 0) + 1);
    try {
      for (;;) {
        const { count } = this.#changes;
        const state = (await this.#next(key)).get(key);
        if (isOver(state) || signal.aborted) return state;
        await this.#changes.after(count, LOOK_MS, signal);
      }
    } finally {
      const others = (this.#awaited.get(key) ?? 1) - 1;
      if (others > 0) this.#awaited.set(key, others);
      else this.#awaited.delete(key);
    }
  }

  /** The look that is under way, where it has the row and nothing was heard since, or else a new one. */
  #next(key: string): Promise<ReadonlyMap<string, State>> {
    const { count } = this.#changes;
    if (this.#look?.count === count && this.#look.keys.has(key)) return this.#look.states;
    const keys = new Set(this.#awaited.keys());
    const states = this.#statesOf([...keys]).finally(() => {
      if (this.#look === look) this.#look = undefined;
    });
    const look: Look<State> = { count, keys, states };
    this.#look = look;
    return states;
  }
}
