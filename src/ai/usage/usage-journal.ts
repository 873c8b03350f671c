import { randomUUID } from 'node:crypto';
import { accessSync, appendFileSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { AbandonedSegment } from './abandoned-segment.js';
import { JournalSegment } from './journal-segment.js';
import { OpenCalls, openCallLines } from './open-calls.js';
import type { UsageRecord } from './usage-record.js';

/** `<process>.<number>.jsonl`; and `<process>.open`, which comes after them in the order of names. */
const NAME = /^([0-9a-f-]{36})\.(?:\d+\.jsonl|(open))$/;
/** So that names sort as their numbers do. */
const DIGITS = 9;

/** Records of one segment, and so of one round trip. */
const MAX_RECORDS = 500;

/** Records that the database refused, for whoever looks into it. */
const REFUSED = 'refused.jsonl';
const MAX_REFUSED_BYTES = 16 * 1024 * 1024;

/**
 * Where usage records are until they are in the database: files that outlive this process however it
 * ends. Records are appended to the last one; each goes as a whole when the database has it.
 */
export class UsageJournal {
  readonly #folder: string;
  readonly #process = randomUUID();
  /** What calls under way have used. */
  readonly open: OpenCalls;
  /** The first one first. */
  readonly #segments = new Set<JournalSegment>();
  /** Others' files: when their processes touched them by the clock, and since when here they have not. */
  #others = new Map<string, { readonly touched: number; readonly since: number }>();
  readonly #now: () => number;
  /** The last of them, while it is appended to. */
  #open: JournalSegment | undefined;
  #segmentsMade = 0;
  #size = 0;
  #closed = false;

  /**
   * @param now milliseconds that never go back.
   * @throws what the file system refuses.
   */
  constructor(folder: string, now: () => number = () => performance.now()) {
    this.#folder = folder;
    this.#now = now;
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    this.open = new OpenCalls(path.join(folder, `${this.#process}.open`));
  }

  /** Records that are not in the database yet. */
  get size(): number {
    return this.#size;
  }

  /**
   * Keeps a record, in memory at least.
   *
   * @throws what the file system refuses.
   */
  append(record: UsageRecord): void {
    if (this.#closed) throw new TypeError('the journal is closed');
    if (this.#open === undefined || this.#open.records.length >= MAX_RECORDS) {
      this.#open = this.#begin();
    }
    this.#size++;
    this.#open.append(record);
  }

  /** All segments, the first one first: what is appended from now on is on none of them. */
  sealAll(): JournalSegment[] {
    this.#open = undefined;
    return [...this.#segments];
  }

  /**
   * The segment's records are in the database.
   *
   * @throws what the file system refuses: then another process gives them to the database once more.
   */
  async remove(segment: JournalSegment): Promise<void> {
    if (this.#segments.delete(segment)) this.#size -= segment.records.length;
    await segment.remove();
  }

  /** Keeps what will never be in the database; when there is too much of it, no more. */
  setAside(line: string): void {
    const file = path.join(this.#folder, REFUSED);
    const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size < MAX_REFUSED_BYTES) appendFileSync(file, `${line}\n`, { mode: 0o600 });
  }

  /** Says that this process lives. */
  touch(): void {
    for (const segment of this.#segments) segment.touch();
    this.open.touch();
  }

  /** Leaves what is not in the database to whoever takes it over. */
  close(): void {
    this.#closed = true;
    for (const segment of this.#segments) segment.close();
    this.open.close();
  }

  /**
   * What processes have left whose files have stayed the same for so many milliseconds, from one look to
   * another: clocks are set, and then all that lives would look as if it had long been silent. Of each
   * process, what its calls used comes before what those under way had used: of a call in both, the
   * first counts.
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
        if (stats === undefined) return []; // another process was first
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
