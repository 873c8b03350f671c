import { TooComplexError } from './page-error.js';
import { readPage, type FetchedPage, type PageReadings, type Reading } from './read-page.js';

/** The program of a reading process, which reads page after page until its parent ends or kills it. */

export interface ReadingTask {
  readonly page: FetchedPage;
  readonly reading: Reading;
}

export type ReadingResult =
  | { readonly value: PageReadings[Reading] }
  | { readonly isTooComplex: boolean; readonly failure: string };

process.on('message', (task: ReadingTask) => process.send?.(resultOf(task)));
// A terminal signals the whole process group; pages in flight must still be finished.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

function resultOf({ page, reading }: ReadingTask): ReadingResult {
  try {
    return { value: readPage(page, reading) };
  } catch (error) {
    // A page that overflows the stack is too complex.
    const isTooComplex = error instanceof TooComplexError || error instanceof RangeError;
    return { isTooComplex, failure: error instanceof Error ? (error.stack ?? error.message) : '' };
  }
}
