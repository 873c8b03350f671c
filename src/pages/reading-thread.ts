import { readlinkSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { TooComplexError } from './page-error.js';
import { readPage, type FetchedPage, type PageReadings, type Reading } from './read-page.js';

/*
 * The program of a thread that reads pages, one after the other. What a page does to it stays in it.
 */

/** What a thread is given. */
export interface ReadingTask {
  readonly page: FetchedPage;
  readonly reading: Reading;
}

/** What it says: first by which number the system knows it, then what became of each task. */
export type ReadingResult =
  | { readonly thread: string | undefined }
  | { readonly value: PageReadings[Reading] }
  | { readonly isTooComplex: boolean; readonly failure: string };

parentPort?.postMessage({ thread: threadNumber() } satisfies ReadingResult);
parentPort?.on('message', (task: ReadingTask) => parentPort?.postMessage(resultOf(task)));

function resultOf({ page, reading }: ReadingTask): ReadingResult {
  try {
    return { value: readPage(page, reading) };
  } catch (error) {
    // A stack that a page has filled is one that would have taken too long.
    const isTooComplex = error instanceof TooComplexError || error instanceof RangeError;
    return { isTooComplex, failure: error instanceof Error ? (error.stack ?? error.message) : '' };
  }
}

/** Only Linux tells it. */
function threadNumber(): string | undefined {
  try {
    return readlinkSync('/proc/thread-self').split('/').at(-1);
  } catch {
    return undefined;
  }
}
