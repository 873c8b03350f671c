import { TextDecoder } from 'node:util';
import { createParser } from 'eventsource-parser';
import { AttemptClock } from './attempt-clock.js';
import type { ChatRequest, Completion, TokenUsage } from '../completion/completion.js';
import { ProviderError } from '../completion/provider-error.js';
import { isSuccess, post, readFailure, readWhole, type ProviderResponse } from './provider-http.js';
import type { ProviderConfig, ProviderName } from '../completion/provider-names.js';
import { adapterOf } from '../providers/adapters.js';
import type { StreamReader, WireEvent } from '../providers/shared/adapter.js';

/** A whole answer that is longer is no answer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
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
  /** Aborted when nobody wants the answer any more. */
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
  /** Of all that the model has said so far, in UTF-8: text, thoughts and calls of tools. */
  bytes(): number;
}

/**
 * Asks one provider for a whole answer.
 *
 * @throws ProviderError; what the signal was aborted with.
 */
export async function askForAnswer(ask: Ask): Promise<Completion> {
  const clock = new AttemptClock(ask.signal, ask.timeoutMs);
  try {
    const response = await send(ask, clock);
    const text = await asProviderError(
      ask,
      clock,
      () => readWhole(ask.name, response, MAX_ANSWER_BYTES),
      response.statusCode,
    );
    return adapterOf(ask.name).readAnswer(text, ask.request);
  } finally {
    clock.stop();
  }
}

/**
 * Asks one provider for a streamed answer, and comes back with it when it has begun.
 *
 * @throws ProviderError when it does not begin; the chunks throw what comes after.
 */
export async function askForStream(ask: Ask): Promise<CompletionStream> {
  const clock = new AttemptClock(ask.signal, ask.timeoutMs, STREAM_MS);
  try {
    const { body, statusCode } = await send(ask, clock);
    const reader = adapterOf(ask.name).openStream(ask.request);
    const chunks = readChunks({ ...ask, statusCode }, eventsOf(ask.name, body), reader, clock);
    // A provider that fails at once has another asked in its place.
    const first = await chunks.next();
    return {
      chunks: await primed(continued(first, chunks)),
      usage: () => reader.usage,
      bytes: () => reader.bytes,
    };
  } catch (error) {
    clock.stop();
    throw error;
  }
}

async function* readChunks(
  ask: Ask & { readonly statusCode: number },
  events: AsyncGenerator<WireEvent>,
  reader: StreamReader,
  clock: AttemptClock,
): AsyncGenerator<string> {
  try {
    while (!reader.over) {
      const next = await asProviderError(ask, clock, () => events.next(), ask.statusCode);
      if (next.done === true) break;
      clock.pause(); // that a client takes it slowly is not the provider's silence
      yield* reader.read(next.value);
      clock.expect(STREAM_IDLE_MS);
    }
    if (!reader.ended) throw new ProviderError(ask.name, 'unreachable', ask.statusCode);
  } finally {
    clock.stop();
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
    yield ''; // where `primed` leaves it
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
export async function primed(generator: AsyncGenerator<string>): Promise<AsyncGenerator<string>> {
  await generator.next();
  return generator;
}

/** Sends the request, and waits for a status that is a success. */
async function send(ask: Ask, clock: AttemptClock): Promise<ProviderResponse> {
  const { name, provider } = ask;
  const adapter = adapterOf(name);
  const wire = adapter.request(provider, ask.request);
  const response = await asProviderError(ask, clock, () => post(wire, clock.signal));
  if (isSuccess(response)) return response;
  const { headers, statusCode } = response;
  const text = await asProviderError(ask, clock, () => readFailure(response), statusCode);
  if (statusCode < 400) throw new ProviderError(name, 'unreachable', statusCode); // leads elsewhere
  throw adapter.readError(statusCode, toHeaders(headers), text);
}

function toHeaders(raw: ProviderResponse['headers']): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(raw)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  return headers;
}

/**
 * Tells apart the caller that left, the time that is up, and the provider that broke off.
 *
 * @param status where the answer has begun.
 */
async function asProviderError<T>(
  ask: Ask,
  clock: AttemptClock,
  work: () => Promise<T>,
  status?: number,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    if (ask.signal.aborted) throw ask.signal.reason;
    const failure = clock.timedOut ? 'timeout' : 'unreachable';
    throw new ProviderError(ask.name, failure, status, undefined, { cause: error });
  }
}

function decode(name: ProviderName, decoder: TextDecoder, piece: Uint8Array): string {
  try {
    return decoder.decode(piece, { stream: true });
  } catch {
    throw new ProviderError(name, 'garbage');
  }
}
