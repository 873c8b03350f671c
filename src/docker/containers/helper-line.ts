import type { Duplex } from 'node:stream';
import { ServiceError } from '../../lib/errors.js';
import type { HelperCall, HelperRequest } from '../../workspace/helper-protocol.js';
import { ContainerError } from './container-errors.js';
import { DockerFrames } from './docker-frames.js';

/** The largest is a diff of characters that JSON escapes with six each. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Milliseconds until an answer times out; more than the helper's own limit. */
const ANSWER_MS = 40_000;

/** Milliseconds of silence while answers are pending, after which the connection counts as dead. */
const SILENT_MS = 60_000;

const NEWLINE = 10;

/** The helper or its connection ended before it answered. */
export class HelperGoneError extends ContainerError {
  override readonly name = 'HelperGoneError';
}

interface Waiting {
  readonly resolve: (answer: string) => void;
  readonly reject: (error: Error) => void;
}

/** A connection to the helper in a container; requests and answers are lines. */
export class HelperLine {
  readonly container: string;
  readonly #stream: Duplex;
  readonly #unusedMs: number;
  readonly #answerMs: number;
  readonly #silentMs: number;
  readonly #waiting = new Map<number, Waiting>();
  readonly #pieces: Buffer[] = [];
  #length = 0;
  #reads = 0;
  /** Since when answers are pending without any data received, whichever the request. */
  #silentSince: number | undefined;
  #lastId = 0;
  #isOpen = true;
  #hasAnswered = false;
  #unused: NodeJS.Timeout | undefined;
  #onEnd: () => void = () => undefined;
  usedAt = Date.now();

  /** `stream` is of an exec without a terminal: its output is in Docker's frames. */
  constructor(
    container: string,
    stream: Duplex,
    unusedMs: number,
    { answerMs = ANSWER_MS, silentMs = SILENT_MS } = {},
  ) {
    this.#answerMs = answerMs;
    this.#silentMs = silentMs;
    this.container = container;
    this.#stream = stream;
    this.#unusedMs = unusedMs;
    const frames = new DockerFrames();
    stream.on('data', (chunk: Buffer) => {
      this.#reads += 1;
      for (const part of frames.read(chunk)) if (part.stream === 'stdout') this.#read(part.bytes);
      this.#silentSince = this.#waiting.size > 0 ? performance.now() : undefined;
    });
    stream.on('error', () => this.end());
    stream.on('end', () => this.end());
    stream.on('close', () => this.end());
    this.#used();
  }

  /** Reports whether requests may be sent. A silent connection counts as closed for the next caller. */
  get isOpen(): boolean {
    const since = this.#silentSince;
    return this.#isOpen && (since === undefined || performance.now() - since < this.#silentMs);
  }

  get isIdle(): boolean {
    return this.#isOpen && this.#waiting.size === 0;
  }

  onEnd(listener: () => void): void {
    this.#onEnd = listener;
    if (!this.#isOpen) listener();
  }

  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Returns the answer. @throws HelperGoneError, ServiceError after 40 s, or the signal's reason. */
  async send(call: HelperCall, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    if (!this.#isOpen) throw new HelperGoneError('The helper has ended');
    const id = ++this.#lastId;
    const late = AbortSignal.timeout(this.#answerMs);
    const ending = AbortSignal.any([signal, late]);
    const answer = new Promise<string>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      ending.addEventListener('abort', () => {
        reject(
          late.aborted && !signal.aborted
            ? new ServiceError(500, 'The workspace did not finish the request in time: retry later')
            : asError(ending.reason),
        );
      });
    });
    this.#used();
    const read = this.#reads;
    this.#silentSince ??= performance.now();
    this.#send({ id, call });
    try {
      return await answer;
    } finally {
      if (this.#waiting.delete(id) && this.#isOpen && ending.aborted)
        this.#send({ id, left: true });
      // A timeout without any data means a dead connection; the next request opens another.
      if (late.aborted && this.#reads === read) this.end();
      this.#used();
    }
  }

  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#unused);
    this.#stream.destroy();
    const gone = new HelperGoneError('The helper has ended');
    for (const { reject } of this.#waiting.values()) reject(gone);
    this.#waiting.clear();
    this.#onEnd();
  }

  #send(request: HelperRequest): void {
    this.#stream.write(`${JSON.stringify(request)}\n`);
  }

  #used(): void {
    this.usedAt = Date.now();
    clearTimeout(this.#unused);
    if (!this.isIdle) return;
    this.#unused = setTimeout(() => this.end(), this.#unusedMs);
    this.#unused.unref();
  }

  #read(piece: Buffer): void {
    let from = 0;
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...this.#pieces.splice(0), piece.subarray(from, at)]);
      this.#length = 0;
      from = at + 1;
      this.#settle(line.toString());
    }
    this.#pieces.push(piece.subarray(from));
    this.#length += piece.length - from;
    if (this.#length > MAX_ANSWER_BYTES) this.end();
  }

  #settle(line: string): void {
    const id = Number(/^\{"id":(\d+),/.exec(line)?.[1]);
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    this.#hasAnswered = true;
    waiting?.resolve(line);
  }
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('The request was cancelled');
