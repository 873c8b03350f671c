import { close, closeSync, futimesSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { UsageRecord } from './usage-record.js';

/** Records, and the file that stores them until they are in the database. */
export class JournalSegment {
  readonly #records: UsageRecord[] = [];
  readonly #file: string;
  #fd: number | undefined;
  /** The last line may be incomplete. */
  #torn = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** Includes records that the file system rejected. */
  get records(): readonly UsageRecord[] {
    return this.#records;
  }

  /**
   * Writes a record before it returns: it survives a kill of the process, but not a crash of the machine.
   * @throws the error of the file system.
   */
  append(record: UsageRecord): void {
    this.#records.push(record);
    this.#fd ??= this.#openFile();
    const line = Buffer.from(`${this.#torn ? '\n' : ''}${JSON.stringify(record)}\n`);
    this.#torn = true;
    for (let done = 0; done < line.length;) done += writeSync(this.#fd, line, done);
    this.#torn = false;
  }

  /** Updates the file's time as a sign of life of its process. */
  touch(): void {
    const now = new Date();
    if (this.#fd !== undefined) futimesSync(this.#fd, now, now);
  }

  close(): void {
    const fd = this.#takeFd();
    if (fd !== undefined) closeSync(fd);
  }

  /** Removes the file asynchronously, since pending disk writes can delay this. */
  async remove(): Promise<void> {
    const fd = this.#takeFd();
    if (fd === undefined) return;
    await rm(this.#file, { force: true });
    await closed(fd);
  }

  /** Recreates the folder if it was removed. */
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
