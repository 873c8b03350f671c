import {
  closeSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  mkdirSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import type { UsageRecord } from './usage-record.js';

/** A page of the file system: nothing that is written into one is cut off by a kill. */
const SLOT_BYTES = 4096;

interface OpenCall {
  readonly slot: number;
  usedSoFar: () => UsageRecord;
  /** As it stands in the file. */
  written: string;
}

/**
 * What calls under way have used so far, in a file that outlives this process however it ends: each
 * has a slot, which is another call's afterwards, so the file is as long as the most at a time.
 */
export class OpenCalls {
  readonly #file: string;
  readonly #calls = new Map<string, OpenCall>();
  readonly #freeSlots: number[] = [];
  #slots = 0;
  #isEmpty = true;
  #fd: number | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** Into the file with the next refresh, if it is open then. */
  expect(callId: string, usedSoFar: () => UsageRecord): void {
    this.#open(callId, usedSoFar);
  }

  /**
   * In the file when this returns.
   *
   * @throws what the file system refuses.
   */
  begin(callId: string, usedSoFar: () => UsageRecord): void {
    this.#write(this.#open(callId, usedSoFar));
  }

  /**
   * Brings the file up to what the calls have used since.
   *
   * @throws what the file system refuses.
   */
  refresh(): void {
    for (const call of this.#calls.values()) this.#write(call);
  }

  /**
   * The call is over, if it was open.
   *
   * @throws what the file system refuses.
   */
  end(callId: string): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    this.#calls.delete(callId);
    this.#freeSlots.push(call.slot);
    if (this.#fd !== undefined && call.written !== '') {
      writeSync(this.#fd, '\n', call.slot * SLOT_BYTES);
    }
    if (this.#calls.size > 0) return;
    this.#freeSlots.length = this.#slots = 0;
    if (this.#fd === undefined || this.#isEmpty) return;
    ftruncateSync(this.#fd, 0);
    this.#isEmpty = true;
  }

  /**
   * Says that its process lives. A file that somebody has taken away, because this was not said for
   * long, is made anew.
   *
   * @throws what the file system refuses.
   */
  touch(): void {
    if (this.#fd === undefined) return;
    if (fstatSync(this.#fd).nlink > 0) {
      const now = new Date();
      return futimesSync(this.#fd, now, now);
    }
    closeSync(this.#fd);
    this.#fd = undefined;
    for (const call of this.#calls.values()) call.written = '';
    this.refresh();
  }

  /** Leaves the file, if a call is open. */
  close(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    if (this.#calls.size === 0) rmSync(this.#file, { force: true });
  }

  /** Of a call that is open already, what it has used is from now on told like this. */
  #open(callId: string, usedSoFar: () => UsageRecord): OpenCall {
    const known = this.#calls.get(callId);
    if (known) {
      known.usedSoFar = usedSoFar;
      return known;
    }
    const call = { slot: this.#freeSlots.pop() ?? this.#slots++, usedSoFar, written: '' };
    this.#calls.set(callId, call);
    return call;
  }

  #write(call: OpenCall): void {
    const line = `${JSON.stringify(call.usedSoFar())}\n`;
    if (line === call.written) return;
    const bytes = Buffer.from(line);
    if (bytes.length > SLOT_BYTES)
      throw new RangeError('a call has more to tell than a slot holds');
    this.#fd ??= this.#openFile();
    this.#isEmpty = false;
    writeSync(this.#fd, bytes, 0, bytes.length, call.slot * SLOT_BYTES);
    call.written = line;
  }

  #openFile(): number {
    mkdirSync(path.dirname(this.#file), { recursive: true });
    return openSync(this.#file, 'w', 0o600);
  }
}

/** The lines of such a file: one for each slot, empty where no call was open. */
export function openCallLines(text: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += SLOT_BYTES) {
    const slot = text.subarray(at, at + SLOT_BYTES);
    lines.push(slot.subarray(0, Math.max(slot.indexOf('\n'), 0)).toString());
  }
  return lines;
}
