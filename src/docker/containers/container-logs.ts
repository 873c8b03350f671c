import type { Readable } from 'node:stream';
import { setBounded } from '../../lib/bounded-map.js';
import { ContainerError, InvalidCursorError } from './container-errors.js';
import { asContainerError, type DockerClient } from './docker-client.js';
import { DockerFrames } from './docker-frames.js';

/** A longer line is split into pieces of at most 16 KiB. */
export interface LogLine {
  /** RFC 3339 with nanoseconds, from Docker. */
  readonly timestamp: string;
  readonly stream: 'stdout' | 'stderr';
  readonly line: string;
  /** The value of `since` that resumes after exactly this line. */
  readonly cursor: string;
  /** The piece ends at Docker's cut: its line continues in the next piece of the same output. */
  readonly isCut?: true;
  /** The text of the piece before, if this piece continues it. */
  readonly continues?: string;
}

export interface LogOptions {
  /** The cursor of the last line seen. */
  readonly since?: string | undefined;
  /** The number of last lines to begin with, if there is no `since`. */
  readonly tail?: number | undefined;
  /** Continue until the container stops or `signal` aborts. */
  readonly follow?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A frame of Docker holds one line of at most 16 KiB with its time; ten times that is invalid. */
const MAX_FRAME_BYTES = 160 * 1024;

/**
 * Lines of both outputs are stamped before they are written, so neighbours can be out of order in the file: a
 * resumed read starts this much earlier.
 */
const DISORDER_MS = 2_000;

/** Maximum number of lines buffered while searching for the cursor's line; lines beyond this are certainly later. */
const MAX_HELD_LINES = 10_000;

/**
 * Lines read before a tail, because pieces of one line share their time: they determine the number of the
 * first piece, and the text that it continues.
 */
const LINES_BEFORE_TAIL = 100;

interface LogRange {
  /** Time in `seconds.fraction`; from the start of the log or of the tail if undefined. */
  readonly since?: string | undefined;
  readonly tail?: number;
  readonly follow: boolean;
}

type OpenLog = (range: LogRange) => Promise<Readable>;

/** A time, and the index among the lines with exactly this time. */
interface Position {
  readonly timestamp: string;
  readonly ordinal: number;
}

interface PlacedLine extends LogLine {
  readonly position: Position;
}

/** Yields log lines, oldest first: after the cursor, the start or the tail. @throws InvalidCursorError */
export async function* readContainerLog(
  client: DockerClient,
  containerId: string,
  { since: cursor, tail, follow = false, signal }: LogOptions,
): AsyncGenerator<LogLine> {
  const shown = { stdout: true, stderr: true, timestamps: true };
  const open: OpenLog = (range) =>
    client.openStream(`/containers/${containerId}/logs`, { ...shown, ...range }, { signal });
  try {
    if (cursor !== undefined) yield* resumeLog(open, cursor, follow);
    else if (tail !== undefined) yield* readTail(open, tail, follow);
    else for await (const line of place(await open({ follow }))) yield withoutPosition(line);
  } catch (error) {
    if (signal?.aborted) return;
    throw asContainerError(error);
  }
}

/** Returns a cursor of the current time; lines written from now on follow it. */
export function cursorOfNow(): string {
  return `${new Date().toISOString().replace('Z', '000000Z')}~0`;
}

/**
 * Yields the lines after the cursor without gaps or duplicates, even if its line has been rotated out or the
 * container replaced. @throws InvalidCursorError
 */
async function* resumeLog(open: OpenLog, cursor: string, follow: boolean): AsyncGenerator<LogLine> {
  let at = parseCursor(cursor);
  let found = false;
  const history = place(await open({ since: slightlyBefore(at), follow: false }));
  for await (const line of after(at, history, () => (found = true))) {
    at = line.position;
    found = true;
    yield withoutPosition(line);
  }
  if (follow) yield* followLog(open, at, found);
}

async function* readTail(open: OpenLog, tail: number, follow: boolean): AsyncGenerator<LogLine> {
  const lines: PlacedLine[] = [];
  let last: PlacedLine | undefined;
  for await (last of place(await open({ tail: tail + LINES_BEFORE_TAIL, follow: false }))) {
    lines.push(last);
    if (lines.length > tail) lines.shift();
  }
  yield* lines.map(withoutPosition);
  if (follow && last) yield* followLog(open, last.position, true);
  else if (follow)
    for await (const line of place(await open({ follow }))) yield withoutPosition(line);
}

/** Follows the log after a position; `isThere` if the log still has the line at the position. */
async function* followLog(open: OpenLog, at: Position, isThere: boolean): AsyncGenerator<LogLine> {
  const lines = place(await open({ since: slightlyBefore(at), follow: true }));
  const fresh = isThere ? after(at, lines, () => undefined) : laterThan(at, lines);
  for await (const line of fresh) yield withoutPosition(line);
}

function withoutPosition({ position: _, ...line }: PlacedLine): LogLine {
  return line;
}

/** Yields the lines after a position; if its line no longer exists, those with a later time. */
async function* after(
  at: Position,
  lines: AsyncIterable<PlacedLine>,
  onFound: () => void,
): AsyncGenerator<PlacedLine> {
  const horizon = new Date(Date.parse(at.timestamp) + DISORDER_MS).toISOString();
  let held: PlacedLine[] = [];
  let passed = false;
  for await (const line of lines) {
    if (passed) {
      yield line;
    } else if (line.timestamp === at.timestamp && line.position.ordinal === at.ordinal) {
      passed = true;
      held = [];
      onFound();
    } else if (line.timestamp > at.timestamp) {
      held.push(line);
      if (line.timestamp <= horizon && held.length < MAX_HELD_LINES) continue;
      passed = true;
      yield* held;
      held = [];
    }
  }
  yield* held;
}

async function* laterThan(at: Position, lines: AsyncIterable<PlacedLine>) {
  for await (const line of lines) if (line.timestamp > at.timestamp) yield line;
}

/** Numbers the lines with the same time, in the order of the file, and links the pieces of a line. */
async function* place(stream: Readable): AsyncGenerator<PlacedLine> {
  const counts = new Map<string, number>();
  const cut = new Map<LogLine['stream'], string>();
  for await (const { stream: source, payload } of wholeFrames(stream)) {
    const space = payload.indexOf(' ');
    const timestamp = payload.slice(0, space);
    const ordinal = (counts.get(timestamp) ?? 0) + 1;
    setBounded(counts, timestamp, ordinal, 1_000);
    const isCut = !payload.endsWith('\n');
    const line = payload.slice(space + 1).replace(/\r?\n$/, '');
    const continues = cut.get(source);
    if (isCut) cut.set(source, line);
    else cut.delete(source);
    yield {
      timestamp,
      stream: source,
      line,
      cursor: `${timestamp}~${ordinal}`,
      ...(isCut && { isCut }),
      ...(continues !== undefined && { continues }),
      position: { timestamp, ordinal },
    };
  }
}

/** Yields whole frames. @throws ContainerError if the stream is no Docker log. */
async function* wholeFrames(stream: Readable) {
  const frames = new DockerFrames();
  let payload: Buffer[] = [];
  // A stream without an encoding yields buffers.
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    for (const { stream: source, bytes, frameBytes, isLast } of frames.read(chunk)) {
      if (frameBytes > MAX_FRAME_BYTES) throw new ContainerError('The log stream is not readable');
      payload.push(bytes);
      if (!isLast) continue;
      yield { stream: source, payload: Buffer.concat(payload).toString() };
      payload = [];
    }
  }
}

function parseCursor(cursor: string): Position {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)~(\d{1,9})$/.exec(cursor);
  const timestamp = match?.[1];
  if (timestamp === undefined || Number.isNaN(Date.parse(timestamp)))
    throw new InvalidCursorError();
  return { timestamp, ordinal: Number(match?.[2]) };
}

function slightlyBefore(at: Position): string {
  const ms = Math.max(0, Date.parse(at.timestamp) - DISORDER_MS);
  return (ms / 1000).toFixed(3);
}
