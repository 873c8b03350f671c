import { TooComplexError } from './page-error.js';
import { readPage, type FetchedPage, type PageReadings, type Reading } from './read-page.js';

/*
 * The program of a process that reads pages, one after the other. What a page does to it stays in it. It ends
 * when whoever started it has ended, or ends it.
 */

/** What it is given. */
export interface ReadingTask {
  readonly page: FetchedPage;
  readonly reading: Reading;
}

/** What became of a task. */
export type ReadingResult =
  | { readonly value: PageReadings[Reading] }
  | { readonly isTooComplex: boolean; readonly failure: string };

process.on('message', (task: ReadingTask) => process.send?.(resultOf(task)));
// A terminal sends them to all, and the pages under way are still waited for.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

function resultOf({ page, reading }: ReadingTask): ReadingResult {
  try {
    return { value: readPage(page, reading) };
  } catch (error) {
    // A stack that a page has filled is one that would have taken too long.
    const isTooComplex = error instanceof TooComplexError || error instanceof RangeError;
    return { isTooComplex, failure: error instanceof Error ? (error.stack ?? error.message) : '' };
  }
}
