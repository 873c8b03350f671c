import { close, closeSync, futimesSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { UsageRecord } from './usage-record.js';

/** A part of the journal: some records, and the file that has them until they are in the database. */
export class JournalSegment {
  readonly #records: UsageRecord[] = [];
  readonly #file: string;
  #fd: number | undefined;
  /** Whether the last line may have no end. */
  #torn = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** Also those that the file system refused. */
  get records(): readonly UsageRecord[] {
    return this.#records;
  }

  /**
   * In the file when this returns: the process may be killed then, but not the machine.
   *
   * @throws what the file system refuses.
   */
  append(record: UsageRecord): void {
    this.#records.push(record);
    this.#fd ??= this.#openFile();
    const line = Buffer.from(`${this.#torn ? '\n' : ''}${JSON.stringify(record)}\n`);
    this.#torn = true;
    for (let done = 0; done < line.length;) done += writeSync(this.#fd, line, done);
    this.#torn = false;
  }

  /** Says that its process lives. */
  touch(): void {
    const now = new Date();
    if (this.#fd !== undefined) futimesSync(this.#fd, now, now);
  }

  /** Leaves the file. */
  close(): void {
    const fd = this.#takeFd();
    if (fd !== undefined) closeSync(fd);
  }

  /** Not at once: a file goes when the disk has done with what it is just writing of it. */
  async remove(): Promise<void> {
    const fd = this.#takeFd();
    if (fd === undefined) return;
    await rm(this.#file, { force: true });
    await closed(fd);
  }

  /** In a folder that is there again if somebody has taken it away. */
  #openFile(): number {
    mkdirSync(path.dirname(this.#file), { recursive: true });
    return openSync(this.#file, 'a', 0o600);
  }

  #takeFd(): number | undefined {
    const fd = this.#fd;
    this.#fd = undefined;
    return fd;
  }
}

const closed = promisify(close);
