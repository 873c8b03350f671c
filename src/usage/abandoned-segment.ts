import { readFileSync, rmSync } from 'node:fs';
import { tryParseJson } from '../json.js';
import { usageRecord, type UsageRecord } from './usage-record.js';

/** A segment of a process that could not bring its records into the database itself. */
export class AbandonedSegment {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** Its records; a last line that was cut off in the middle was never acknowledged. */
  read(): { readonly records: UsageRecord[]; readonly unreadable: string[] } {
    const records: UsageRecord[] = [];
    const unreadable: string[] = [];
    for (const line of this.#text().split('\n').slice(0, -1)) {
      const record = usageRecord.safeParse(tryParseJson(line)).data;
      if (record) records.push(record);
      else if (line !== '') unreadable.push(line);
    }
    return { records, unreadable };
  }

  remove(): void {
    rmSync(this.#file, { force: true });
  }

  #text(): string {
    try {
      return readFileSync(this.#file, 'utf8');
    } catch (error) {
      if (isMissing(error)) return ''; // another process was first
      throw error;
    }
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';
