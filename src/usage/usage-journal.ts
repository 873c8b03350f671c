import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  fstatSync,
  ftruncate,
  futimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { AbandonedJournal } from './abandoned-journal.js';
import type { UsageRecord } from './usage-record.js';

/** `<holder>.<0 or 1>.jsonl` */
const NAME = /^([0-9a-f-]{36})\.[01]\.jsonl$/;

/** Records that the database refused, for whoever looks into it. */
const REFUSED = 'refused.jsonl';
const MAX_REFUSED_BYTES = 16 * 1024 * 1024;

const truncate = promisify(ftruncate);

interface Page {
  readonly file: string;
  fd: number;
  /** Whether the last line may have no end. */
  torn: boolean;
}

/**
 * Where usage records are until they are in the database: a file that outlives this process however
 * it ends. There are two pages. One is written to; the other holds exactly those records that are
 * on their way into the database, and is emptied when they are there.
 */
export class UsageJournal {
  readonly #holder = randomUUID();
  readonly #pages: [Page, Page];
  /** Under way; never fails. */
  #clearing: Promise<void> | undefined;
  #closed = false;

  /** @throws what the file system refuses. */
  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#pages = [this.#open(0), this.#open(1)];
  }

  /**
   * In the file when this returns: the process may be killed then, but not the machine.
   *
   * @throws what the file system refuses.
   */
  append(record: UsageRecord): void {
    if (this.#closed) throw new TypeError('the journal is closed');
    const [page] = this.#pages;
    const line = Buffer.from(`${page.torn ? '\n' : ''}${JSON.stringify(record)}\n`);
    page.torn = true;
    for (let done = 0; done < line.length;) done += writeSync(page.fd, line, done);
    page.torn = false;
  }

  /** Turns the page: what was appended so far stays on the one that `clear` empties. */
  turn(): void {
    this.#pages.reverse();
  }

  /**
   * What was on the page before the last turn is in the database. Not at once: a file is shortened
   * only when the disk has done with what it is just writing of it.
   *
   * @throws what the file system refuses.
   */
  async clear(): Promise<void> {
    const [, page] = this.#pages;
    const cleared = truncate(page.fd, 0);
    this.#clearing = cleared.catch(() => undefined);
    try {
      await cleared;
      page.torn = false;
    } finally {
      this.#clearing = undefined;
    }
  }

  /** Keeps what will never be in the database; when there is too much of it, no more. */
  setAside(line: string): void {
    const file = path.join(this.folder, REFUSED);
    const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size < MAX_REFUSED_BYTES) appendFileSync(file, `${line}\n`, { mode: 0o600 });
  }

  /** Says that this process lives. Opens anew what somebody has taken away. */
  touch(): void {
    // Not while a file is at work that would be closed; the next time is soon enough.
    if (this.#clearing !== undefined) return;
    for (const page of this.#pages) {
      const now = new Date();
      if (fstatSync(page.fd).nlink > 0) futimesSync(page.fd, now, now);
      else {
        mkdirSync(this.folder, { recursive: true });
        const gone = page.fd;
        page.fd = openSync(page.file, 'a', 0o600);
        page.torn = false;
        closeSync(gone);
      }
    }
  }

  /** To be called once. @param keep leaves the files to whoever takes them over. */
  async close(keep: boolean): Promise<void> {
    this.#closed = true;
    await this.#clearing;
    for (const { fd, file } of this.#pages) {
      closeSync(fd);
      if (!keep) rmSync(file, { force: true });
    }
  }

  /** Journals of processes that have not been heard of for so many milliseconds. */
  abandoned(afterMs: number): AbandonedJournal[] {
    return readdirSync(this.folder).flatMap((name) => {
      const [, holder] = NAME.exec(name) ?? [];
      if (holder === undefined || holder === this.#holder) return [];
      const file = path.join(this.folder, name);
      return ageOf(file) > afterMs ? [new AbandonedJournal(file)] : [];
    });
  }

  #open(page: 0 | 1): Page {
    const file = path.join(this.folder, `${this.#holder}.${page}.jsonl`);
    return { file, fd: openSync(file, 'a', 0o600), torn: false };
  }
}

/** Milliseconds since it was touched; one that another process has taken away is new. */
function ageOf(file: string): number {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? 0 : Date.now() - stats.mtimeMs;
}
