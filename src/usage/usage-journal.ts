import {
  closeSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { usageRecord, type UsageRecord } from './usage-record.js';

/** `<holder>.<0 or 1>.jsonl` */
const NAME = /^([0-9a-f-]{36})\.[01]\.jsonl$/;

interface Page {
  readonly file: string;
  fd: number;
}

/**
 * Where usage records are until they are in the database: a file that outlives this process however
 * it ends. There are two pages. One is written to; the other holds exactly those records that are
 * on their way into the database, and is emptied when they are there.
 */
export class UsageJournal {
  #pages: [Page, Page];

  /** @throws what the file system refuses. */
  constructor(
    private readonly folder: string,
    private readonly holder: string,
  ) {
    mkdirSync(folder, { recursive: true });
    this.#pages = [this.#open(0), this.#open(1)];
  }

  /** In the file when this returns: the process may be killed then, but not the machine. */
  append(record: UsageRecord): void {
    const [{ fd }] = this.#pages;
    writeSync(fd, `${JSON.stringify(record)}\n`);
  }

  /** Turns the page: what was appended so far stays on the one that `clear` empties. */
  turn(): void {
    this.#pages.reverse();
  }

  /** What was on the page before the last turn is in the database. */
  clear(): void {
    ftruncateSync(this.#pages[1].fd, 0);
  }

  /** Says that this process lives. Opens anew what somebody has taken away. */
  touch(): void {
    for (const page of this.#pages) {
      const now = new Date();
      if (fstatSync(page.fd).nlink > 0) futimesSync(page.fd, now, now);
      else {
        closeSync(page.fd);
        page.fd = openSync(page.file, 'a', 0o600);
      }
    }
  }

  /** Takes the journal away, once everything on it is in the database. */
  remove(): void {
    for (const { fd, file } of this.#pages) {
      closeSync(fd);
      rmSync(file, { force: true });
    }
  }

  /** Journals of processes that have not been heard of for so many milliseconds. */
  abandoned(afterMs: number): AbandonedJournal[] {
    return readdirSync(this.folder).flatMap((name) => {
      const [, holder] = NAME.exec(name) ?? [];
      if (holder === undefined || holder === this.holder) return [];
      const file = path.join(this.folder, name);
      return ageOf(file) > afterMs ? [new AbandonedJournal(file)] : [];
    });
  }

  #open(page: 0 | 1): Page {
    const file = path.join(this.folder, `${this.holder}.${page}.jsonl`);
    return { file, fd: openSync(file, 'a', 0o600) };
  }
}

/** What a process left that could not bring its records into the database itself. */
export class AbandonedJournal {
  constructor(readonly file: string) {}

  /** Its records; a last line that was cut off in the middle was never acknowledged. */
  read(): { readonly records: UsageRecord[]; readonly unreadable: number } {
    let text: string;
    try {
      text = readFileSync(this.file, 'utf8');
    } catch (error) {
      if (isMissing(error)) return { records: [], unreadable: 0 }; // another process was first
      throw error;
    }
    const lines = text.split('\n').slice(0, -1);
    const records = lines.flatMap((line) => parse(line) ?? []);
    return { records, unreadable: lines.length - records.length };
  }

  remove(): void {
    rmSync(this.file, { force: true });
  }
}

function parse(line: string): UsageRecord | undefined {
  try {
    return usageRecord.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** Milliseconds since it was touched; one that another process has taken away is new. */
function ageOf(file: string): number {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? 0 : Date.now() - stats.mtimeMs;
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';
