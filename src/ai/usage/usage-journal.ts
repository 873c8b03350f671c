import { randomUUID } from 'node:crypto';
import { accessSync, appendFileSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { AbandonedSegment } from './abandoned-segment.js';
import { JournalSegment } from './journal-segment.js';
import { OpenCalls, openCallLines } from './open-calls.js';
import type { UsageRecord } from './usage-record.js';

/** `<process>.<number>.jsonl`, and `<process>.open`, which sorts after the numbered files. */
const NAME = /^([0-9a-f-]{36})\.(?:\d+\.jsonl|(open))$/;
/** Zero padding, so that file names sort by number. */
const DIGITS = 9;

/** Maximum number of records of one segment, which is stored in one round trip. */
const MAX_RECORDS = 500;

/** File of records that the database refused, for an operator to examine. */
const REFUSED = 'refused.jsonl';
const MAX_REFUSED_BYTES = 16 * 1024 * 1024;

/**
 * Usage records not yet in the database, in files that survive any end of this process. Records are appended
 * to the last segment; a segment is removed as a whole once the database has stored it.
 */
export class UsageJournal {
  readonly #folder: string;
  readonly #process = randomUUID();
  readonly open: OpenCalls;
  readonly #segments = new Set<JournalSegment>();
  /** Files of other processes: their modification time, and since when this process has seen it unchanged. */
  #others = new Map<string, { readonly touched: number; readonly since: number }>();
  readonly #now: () => number;
  /** The last segment, while records are appended to it. */
  #open: JournalSegment | undefined;
  #segmentsMade = 0;
  #size = 0;
  #closed = false;

  /** `now`: milliseconds of a monotonic clock. @throws the file system's error. */
  constructor(folder: string, now: () => number = () => performance.now()) {
    this.#folder = folder;
    this.#now = now;
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    this.open = new OpenCalls(path.join(folder, `${this.#process}.open`));
  }

  /** Number of records not yet in the database. */
  get size(): number {
    return this.#size;
  }

  /** Stores a record, at least in memory. @throws the file system's error. */
  append(record: UsageRecord): void {
    if (this.#closed) throw new TypeError('the journal is closed');
    if (this.#open === undefined || this.#open.records.length >= MAX_RECORDS) {
      this.#open = this.#begin();
    }
    this.#size++;
    this.#open.append(record);
  }

  /** Returns all segments, oldest first. Later records are appended to a new segment. */
  sealAll(): JournalSegment[] {
    this.#open = undefined;
    return [...this.#segments];
  }

  /**
   * Removes a segment whose records are in the database.
   * @throws the file system's error; another process then sends the records to the database again.
   */
  async remove(segment: JournalSegment): Promise<void> {
    if (this.#segments.delete(segment)) this.#size -= segment.records.length;
    await segment.remove();
  }

  /** Stores a line that the database refused permanently, up to a total of `MAX_REFUSED_BYTES`. */
  quarantine(line: string): void {
    const file = path.join(this.#folder, REFUSED);
    const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size < MAX_REFUSED_BYTES) appendFileSync(file, `${line}\n`, { mode: 0o600 });
  }

  /** Touches the files, to show that this process is alive. */
  touch(): void {
    for (const segment of this.#segments) segment.touch();
    this.open.touch();
  }

  /** Closes the files; another process takes over the records that are not in the database. */
  close(): void {
    this.#closed = true;
    for (const segment of this.#segments) segment.close();
    this.open.close();
  }

  /**
   * Returns other processes' files that stayed unchanged for `afterMs` between calls, by the monotonic clock:
   * after a clock change live processes would seem long silent. A process's finished calls precede its calls
   * in flight; of a call in both, the first counts.
   */
  abandoned(afterMs: number): AbandonedSegment[] {
    const now = this.#now();
    const before = this.#others;
    this.#others = new Map();
    return readdirSync(this.#folder)
      .toSorted()
      .flatMap((name) => {
        const [, owner, open] = NAME.exec(name) ?? [];
        if (owner === undefined || owner === this.#process) return [];
        const file = path.join(this.#folder, name);
        const stats = statSync(file, { throwIfNoEntry: false });
        if (stats === undefined) return []; // another process removed the file first
        const touched = stats.mtimeMs;
        const last = before.get(name);
        const since = last?.touched === touched ? last.since : now;
        this.#others.set(name, { touched, since });
        if (now - since <= afterMs) return [];
        return [new AbandonedSegment(file, open === undefined ? undefined : openCallLines)];
      });
  }

  #begin(): JournalSegment {
    const number = String(this.#segmentsMade++).padStart(DIGITS, '0');
    const segment = new JournalSegment(path.join(this.#folder, `${this.#process}.${number}.jsonl`));
    this.#segments.add(segment);
    return segment;
  }
}
