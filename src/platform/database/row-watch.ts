import type { TableChanges } from './row-changes.js';

/** Milliseconds between two polls without notifications. */
const QUERY_MS = 250;

/** A poll, for all rows that were awaited when it began. */
interface StateQuery<State> {
  /** Number of notifications when the poll began. */
  readonly count: number;
  readonly keys: ReadonlySet<string>;
  readonly states: Promise<ReadonlyMap<string, State>>;
}

/** Waits for rows' states with one statement at a time, at notifications of their table and by polling. */
export class RowWatch<State> {
  readonly #changes: TableChanges;
  readonly #statesOf: (keys: readonly string[]) => Promise<ReadonlyMap<string, State>>;
  readonly #awaited = new Map<string, number>();
  #query: StateQuery<State> | undefined;

  constructor(
    changes: TableChanges,
    statesOf: (keys: readonly string[]) => Promise<ReadonlyMap<string, State>>,
  ) {
    this.#changes = changes;
    this.#statesOf = statesOf;
  }

  /**
   * Returns the first state for which `isOver` is true, or the last one before the signal aborted; undefined is
   * a missing row. @throws errors of the poll and of `isOver`.
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
        await this.#changes.after(count, QUERY_MS, signal);
      }
    } finally {
      const others = (this.#awaited.get(key) ?? 1) - 1;
      if (others > 0) this.#awaited.set(key, others);
      else this.#awaited.delete(key);
    }
  }

  /** Returns the poll in flight if it has the row and no notification arrived since, or else a new one. */
  #next(key: string): Promise<ReadonlyMap<string, State>> {
    const { count } = this.#changes;
    if (this.#query?.count === count && this.#query.keys.has(key)) return this.#query.states;
    const keys = new Set(this.#awaited.keys());
    const states = this.#statesOf([...keys]).finally(() => {
      if (this.#query === query) this.#query = undefined;
    });
    const query: StateQuery<State> = { count, keys, states };
    this.#query = query;
    return states;
  }
}
