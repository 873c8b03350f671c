import { readFileSync, rmSync } from 'node:fs';
import { tryParseJson } from '../../lib/json.js';
import { usageRecord, type UsageRecord } from './usage-record.js';

/** A journal segment of a process that could not write its records to the database itself. */
export class AbandonedSegment {
  readonly #file: string;
  readonly #linesOf: (content: Buffer) => string[];

  constructor(file: string, linesOf = wholeLines) {
    this.#file = file;
    this.#linesOf = linesOf;
  }

  read(): { readonly records: UsageRecord[]; readonly unreadable: string[] } {
    const records: UsageRecord[] = [];
    const unreadable: string[] = [];
    for (const line of this.#linesOf(this.#content())) {
      const record = usageRecord.safeParse(tryParseJson(line)).data;
      if (record) records.push(record);
      else if (line !== '') unreadable.push(line);
    }
    return { records, unreadable };
  }

  remove(): void {
    rmSync(this.#file, { force: true });
  }

  #content(): Buffer {
    try {
      return readFileSync(this.#file);
    } catch (error) {
      if (isMissing(error)) return Buffer.alloc(0); // another process removed it first
      throw error;
    }
  }
}

/** A truncated last line was never acknowledged. */
const wholeLines = (content: Buffer) => content.toString().split('\n').slice(0, -1);

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';
