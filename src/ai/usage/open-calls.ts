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

/** A page of the file system: a kill cannot cut off a write into one. */
const SLOT_BYTES = 4096;

interface OpenCall {
  readonly slot: number;
  usedSoFar: () => UsageRecord;
  /** The content of its slot in the file. */
  written: string;
}

/**
 * The usage so far of calls in flight, in a file that survives this process. Each call has a slot, reused
 * after it, so the file is as long as the most concurrent calls.
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

  /** Writes the call to the file at the next refresh, if it is still open then. */
  expect(callId: string, usedSoFar: () => UsageRecord): void {
    this.#open(callId, usedSoFar);
  }

  /** Writes the call to the file before it returns. @throws the error of the file system. */
  begin(callId: string, usedSoFar: () => UsageRecord): void {
    this.#write(this.#open(callId, usedSoFar));
  }

  /** Updates the file with the usage of all open calls. @throws the error of the file system. */
  refresh(): void {
    for (const call of this.#calls.values()) this.#write(call);
  }

  /** Ends a call and clears its slot, if it was open. @throws the error of the file system. */
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
   * Updates the file's time as a sign of life. Recreates a file that was removed because the sign was late.
   * @throws the error of the file system.
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

  /** Closes the file, and keeps it if a call is open. */
  close(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    if (this.#calls.size === 0) rmSync(this.#file, { force: true });
  }

  /** Opens a call; for one that is already open, replaces the source of its usage. */
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
    if (bytes.length > SLOT_BYTES) throw new RangeError('a record exceeds the size of a slot');
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

/** Returns the lines of the file, one for each slot; empty if no call was open. */
export function openCallLines(text: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += SLOT_BYTES) {
    const slot = text.subarray(at, at + SLOT_BYTES);
    lines.push(slot.subarray(0, Math.max(slot.indexOf('\n'), 0)).toString());
  }
  return lines;
}
