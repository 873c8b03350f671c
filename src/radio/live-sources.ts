import { cachedFor } from '../lib/cached-for.js';
import type { Icecast } from './icecast.js';
import type { Source } from './icecast-stats.js';

/** Milliseconds between two readings of Icecast, for all readers of a process. */
const KEPT_MS = 1_000;

type Reading =
  | { readonly byMount: ReadonlyMap<string, Source> }
  | { readonly byMount: undefined; readonly error: unknown };

/** The sources that are connected now, read at most once a second; a failure is kept as long. */
export class LiveSources {
  readonly #read: () => Promise<Reading>;

  constructor(icecast: Pick<Icecast, 'sources'>) {
    this.#read = cachedFor(KEPT_MS, async () => {
      try {
        const sources = await icecast.sources();
        return { byMount: new Map(sources.map((source) => [source.mount, source])) };
      } catch (error) {
        return { byMount: undefined, error };
      }
    });
  }

  /** Returns the sources by mount. @throws IcecastAwayError */
  async all(): Promise<ReadonlyMap<string, Source>> {
    const reading = await this.#read();
    if (!reading.byMount) throw reading.error;
    return reading.byMount;
  }

  /** Returns the sources by mount; undefined while Icecast does not answer. */
  async known(): Promise<ReadonlyMap<string, Source> | undefined> {
    return (await this.#read()).byMount;
  }
}
