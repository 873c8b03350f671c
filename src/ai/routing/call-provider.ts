import { TextDecoder } from 'node:util';
import { createParser } from 'eventsource-parser';
import { AttemptClock } from './attempt-clock.js';
import type { ChatRequest, Completion, TokenUsage } from '../completion/completion.js';
import { ProviderError } from '../completion/provider-error.js';
import { isSuccess, post, readFailure, readWhole, type ProviderResponse } from './provider-http.js';
import type { ProviderConfig, ProviderName } from '../completion/provider-names.js';
import { adapterOf } from '../providers/adapters.js';
import { DONE, type StreamReader, type WireEvent } from '../providers/shared/adapter.js';
import { tryParseJson } from '../../lib/json.js';

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Maximum number of characters of an event, which may contain an image. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** Maximum number of bytes between two events: comments, and the beginning of the next event. */
const MAX_QUIET_BYTES = 64 * 1024 * 1024;
/** Maximum number of characters of chunks without output that wait for the first output. */
const MAX_HELD_LENGTH = 64 * 1024;
/** Milliseconds between two stream events, and for the whole stream. */
const STREAM_IDLE_MS = 60_000;
const STREAM_MS = 10 * 60_000;

export interface ProviderCall {
  readonly name: ProviderName;
  readonly provider: ProviderConfig;
  /** The request, with the provider's own name for the model. */
  readonly request: ChatRequest;
  /** Milliseconds for a complete answer, or until a stream begins. */
  readonly timeoutMs: number;
  /** Aborted when the answer is no longer needed. */
  readonly signal: AbortSignal;
}

export interface CompletionStream {
  /**
   * OpenAI `chat.completion.chunk`s as JSON; may throw a ProviderError. Call `return` before the end to stop.
   */
  readonly chunks: AsyncGenerator<string>;
  /** Returns the usage that the provider has reported so far. */
  usage(): TokenUsage | undefined;
  /** Returns the UTF-8 bytes of the model's output so far: text, reasoning and tool calls. */
  bytes(): number;
}

/** Requests a complete answer. @throws ProviderError; the abort reason of the signal. */
export async function requestCompletion(call: ProviderCall): Promise<Completion> {
  const clock = new AttemptClock(call.signal, call.timeoutMs);
  try {
    const response = await send(call, clock);
    const text = await asProviderError(
      call,
      clock,
      () => readWhole(call.name, response, MAX_ANSWER_BYTES),
      response.statusCode,
    );
    return adapterOf(call.name).readAnswer(text, call.request);
  } finally {
    clock.stop();
  }
}

/** Requests a stream, and returns at its first output. @throws ProviderError, as the chunks do later. */
export async function requestStream(call: ProviderCall): Promise<CompletionStream> {
  const clock = new AttemptClock(call.signal, call.timeoutMs, STREAM_MS);
  try {
    const { body, statusCode } = await send(call, clock);
    const reader = adapterOf(call.name).openStream(call.request);
    const chunks = readChunks(
      { ...call, statusCode },
      eventsOf(call.name, body, clock),
      reader,
      clock,
    );
    const held = await untilOutput(chunks, reader);
    return {
      chunks: await primed(continued(held, chunks)),
      usage: () => reader.usage,
      bytes: () => reader.bytes,
    };
  } catch (error) {
    clock.stop();
    throw error;
  }
}

/**
 * Reads up to the first output of the model. Chunks before, such as the role, wait with it, so that another
 * provider can replace one that fails until then.
 */
async function untilOutput(
  chunks: AsyncGenerator<string>,
  reader: StreamReader,
): Promise<readonly string[]> {
  const held: string[] = [];
  let length = 0;
  while (reader.bytes === 0 && !reader.ended && length < MAX_HELD_LENGTH) {
    const next = await chunks.next();
    if (next.done === true) break;
    held.push(next.value);
    length += next.value.length;
  }
  return held;
}

async function* readChunks(
  call: ProviderCall & { readonly statusCode: number },
  events: AsyncGenerator<WireEvent>,
  reader: StreamReader,
  clock: AttemptClock,
): AsyncGenerator<string> {
  try {
    while (!reader.over) {
      const next = await asProviderError(call, clock, () => events.next(), call.statusCode);
      if (next.done === true) break;
      clock.pause(); // a slow client must not count as a silent provider
      yield* reader.read(next.value);
      clock.expect(STREAM_IDLE_MS);
    }
    if (!reader.ended) throw new ProviderError(call.name, 'unreachable', call.statusCode);
    clock.stop();
    yield* reader.finish();
  } finally {
    clock.stop();
    await events.return(undefined);
  }
}

async function* eventsOf(
  name: ProviderName,
  body: AsyncIterable<Uint8Array>,
  clock: AttemptClock,
): AsyncGenerator<WireEvent> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let events: WireEvent[] = [];
  let tooLong = false;
  let quietBytes = 0;
  const parser = createParser({
    maxBufferSize: MAX_EVENT_LENGTH,
    // An event without data is none, as a comment.
    onEvent: (event) => event.data !== '' && events.push(event),
    onError: ({ type }) => (tooLong ||= type === 'max-buffer-size-exceeded'),
  });
  for await (const piece of body) {
    parser.feed(decode(name, decoder, piece));
    if (events.length === 0) {
      clock.extend(); // a comment is a sign of life
      quietBytes += piece.length;
    } else {
      quietBytes = 0;
    }
    yield* events;
    if (tooLong || quietBytes > MAX_QUIET_BYTES) throw new ProviderError(name, 'garbage');
    events = [];
  }
  parser.feed('\n\n'); // the last event may lack its blank line
  for (const event of events) if (isWhole(event)) yield event;
}

/** Reports whether an event at the end of a body is complete; JSON that is cut off is not. */
const isWhole = ({ data }: WireEvent): boolean => data === DONE || tryParseJson(data) !== undefined;

async function* continued(
  held: readonly string[],
  rest: AsyncGenerator<string>,
): AsyncGenerator<string> {
  try {
    yield ''; // `primed` stops here
    yield* held;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

/** Advances a generator to its first, empty yield: one that never started would skip its `finally` block. */
export async function primed(generator: AsyncGenerator<string>): Promise<AsyncGenerator<string>> {
  await generator.next();
  return generator;
}

async function send(call: ProviderCall, clock: AttemptClock): Promise<ProviderResponse> {
  const { name, provider } = call;
  const adapter = adapterOf(name);
  const wire = adapter.request(provider, call.request);
  const response = await asProviderError(call, clock, () => post(wire, clock.signal));
  if (isSuccess(response)) return response;
  const { headers, statusCode } = response;
  const text = await asProviderError(call, clock, () => readFailure(response), statusCode);
  if (statusCode < 400) throw new ProviderError(name, 'unreachable', statusCode); // a redirect
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
 * Distinguishes an abort by the caller, a timeout and a broken connection. `status`: the answer has begun.
 */
async function asProviderError<T>(
  call: ProviderCall,
  clock: AttemptClock,
  work: () => Promise<T>,
  status?: number,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    if (call.signal.aborted) throw call.signal.reason;
    const failure = clock.timedOut ? 'timeout' : 'unreachable';
    throw new ProviderError(call.name, failure, status, undefined, { cause: error });
  }
}

function decode(name: ProviderName, decoder: TextDecoder, piece: Uint8Array): string {
  try {
    return decoder.decode(piece, { stream: true });
  } catch {
    throw new ProviderError(name, 'garbage');
  }
}
