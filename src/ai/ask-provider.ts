import { TextDecoder } from 'node:util';
import { createParser } from 'eventsource-parser';
import type { ChatRequest, Completion, TokenUsage } from './completion.js';
import { ProviderError } from './provider-error.js';
import type { ProviderConfig, ProviderName } from './provider-names.js';
import { adapterOf } from './providers/adapters.js';
import type { StreamReader, WireEvent } from './providers/adapter.js';

/** A whole answer that is longer is no answer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** What is read of an error: enough for its type. */
const MAX_ERROR_BYTES = 64 * 1024;
/** Of one event of a stream, in characters: an image may be in it. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** Between two events of a stream, and for all of it. */
const STREAM_IDLE_MS = 60_000;
const STREAM_MS = 10 * 60_000;

/** Who is asked, and for how long. */
export interface Ask {
  readonly name: ProviderName;
  readonly provider: ProviderConfig;
  /** Its `model` is what the provider calls it. */
  readonly request: ChatRequest;
  /** Milliseconds for a whole answer, and for a streamed one to begin. */
  readonly timeoutMs: number;
  /** The caller's: aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** An answer that comes piece by piece. */
export interface CompletionStream {
  /**
   * OpenAI `chat.completion.chunk`s as JSON. Ends with the answer, or throws a ProviderError. To be
   * returned if it is not read to its end.
   */
  readonly chunks: AsyncGenerator<string>;
  /** What the provider has said so far that the call uses. */
  usage(): TokenUsage | undefined;
}

/**
 * Asks one provider for a whole answer.
 *
 * @throws ProviderError; what the signal was aborted with when the caller has left.
 */
export async function askForAnswer(ask: Ask): Promise<Completion> {
  const time = AbortSignal.timeout(ask.timeoutMs);
  const response = await send(ask, AbortSignal.any([ask.signal, time]), time);
  const text = await failing(ask, time, () => readText(ask.name, response, MAX_ANSWER_BYTES));
  return adapterOf(ask.name).readAnswer(text, ask.request);
}

/**
 * Asks one provider for a streamed answer, and comes back with it when it has begun.
 *
 * @throws ProviderError when it does not begin; the chunks throw what comes after.
 */
export async function askForStream(ask: Ask): Promise<CompletionStream> {
  const time = new IdleTimer(ask.timeoutMs, STREAM_MS);
  try {
    const signal = AbortSignal.any([ask.signal, time.signal]);
    const response = await send(ask, signal, time.signal);
    if (!response.body) throw new ProviderError(ask.name, 'garbage', response.status);
    const reader = adapterOf(ask.name).openStream(ask.request);
    const chunks = readChunks(ask, eventsOf(ask.name, response.body), reader, time);
    // A provider that fails at once has another asked in its place.
    const first = await chunks.next();
    return { chunks: await begun(continued(first, chunks)), usage: () => reader.usage };
  } catch (error) {
    time.stop();
    throw error;
  }
}

async function* readChunks(
  ask: Ask,
  events: AsyncGenerator<WireEvent>,
  reader: StreamReader,
  time: IdleTimer,
): AsyncGenerator<string> {
  try {
    while (!reader.over) {
      const next = await failing(ask, time.signal, () => events.next());
      if (next.done === true) break;
      time.stop(); // that a client takes it slowly is not the provider's silence
      yield* reader.read(next.value);
      time.restart(STREAM_IDLE_MS);
    }
    if (!reader.ended) throw new ProviderError(ask.name, 'unreachable');
  } finally {
    time.stop();
    await events.return(undefined);
  }
}

async function* eventsOf(
  name: ProviderName,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<WireEvent> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let events: WireEvent[] = [];
  let tooLong = false;
  const parser = createParser({
    maxBufferSize: MAX_EVENT_LENGTH,
    onEvent: (event) => events.push(event),
    onError: ({ type }) => (tooLong ||= type === 'max-buffer-size-exceeded'),
  });
  for await (const piece of body) {
    parser.feed(decode(name, decoder, piece));
    yield* events;
    if (tooLong) throw new ProviderError(name, 'garbage');
    events = [];
  }
}

async function* continued(
  first: IteratorResult<string>,
  rest: AsyncGenerator<string>,
): AsyncGenerator<string> {
  try {
    yield ''; // where `begun` leaves it
    if (first.done === true) return;
    yield first.value;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

/**
 * Takes a generator to its first yield, which is nobody's: one that was never begun would not do
 * what it has to do at its end.
 */
export async function begun(generator: AsyncGenerator<string>): Promise<AsyncGenerator<string>> {
  await generator.next();
  return generator;
}

/** Sends the request, and waits for a status that is a success. */
async function send(ask: Ask, signal: AbortSignal, time: AbortSignal): Promise<Response> {
  const adapter = adapterOf(ask.name);
  const { url, headers, body } = adapter.request(ask.provider, ask.request);
  const response = await failing(ask, time, () =>
    fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' }),
  );
  if (response.ok) return response;
  const text = await failing(ask, time, () =>
    readText(ask.name, response, MAX_ERROR_BYTES, 'cut off'),
  );
  throw adapter.readError(response.status, response.headers, text);
}

/** Tells apart the caller that left, the time that is up, and the provider that broke off. */
async function failing<T>(ask: Ask, time: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    if (ask.signal.aborted) throw ask.signal.reason;
    const failure = time.aborted ? 'timeout' : 'unreachable';
    throw new ProviderError(ask.name, failure, undefined, undefined, { cause: error });
  }
}

/** @throws ProviderError for a body that is longer, unless it may be cut off. */
async function readText(
  name: ProviderName,
  response: Response,
  most: number,
  tooLong: 'cut off' | 'refused' = 'refused',
): Promise<string> {
  if (!response.body) return '';
  const decoder = new TextDecoder('utf-8', { fatal: tooLong === 'refused' });
  let text = '';
  let size = 0;
  for await (const piece of response.body as AsyncIterable<Uint8Array>) {
    size += piece.length;
    text += decode(name, decoder, piece);
    if (size <= most) continue;
    if (tooLong === 'refused') throw new ProviderError(name, 'garbage', response.status);
    return text;
  }
  return text + decode(name, decoder);
}

function decode(name: ProviderName, decoder: TextDecoder, piece?: Uint8Array): string {
  try {
    return piece ? decoder.decode(piece, { stream: true }) : decoder.decode();
  } catch {
    throw new ProviderError(name, 'garbage');
  }
}

/** A timeout that begins anew with every sign of life, and one for the whole. */
class IdleTimer {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout;

  constructor(ms: number, wholeMs: number) {
    this.signal = AbortSignal.any([this.#controller.signal, AbortSignal.timeout(wholeMs)]);
    this.#timer = this.#set(ms);
  }

  restart(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = this.#set(ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #set(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(), ms);
  }
}
