import { createParser, type ParseError } from 'eventsource-parser';
import * as z from 'zod';
import { BadGatewayError } from '../../lib/errors.js';
import { boundedRequest } from '../../platform/http/strict-call.js';
import { tryParseJson } from '../../lib/json.js';

/** Milliseconds an agent may take for a whole answer, including tool calls. */
export const ANSWER_TIMEOUT_MS = 5 * 60_000;

/** Maximum number of characters of an answer. */
const MAX_ANSWER_LENGTH = 1024 * 1024;

/** Maximum number of empty events in an answer: gateways send them as keep-alives and during tool calls. */
const MAX_EMPTY_EVENTS = 20_000;

/**
 * An event is some hundred bytes, models write a hundred a second, and reading 18 MB a second takes a core.
 */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
const BYTES_PER_SECOND = 512 * 1024;

export interface Gateway {
  readonly port: number;
  readonly token: string;
}

const chunk = z.object({
  choices: z
    .array(z.object({ delta: z.object({ content: z.string().nullish() }).optional() }))
    .optional(),
  error: z.unknown().optional(),
});

/** The gateway accepted no connection, so the question was not sent. */
export class GatewayAwayError extends BadGatewayError {
  override readonly name = 'GatewayAwayError';
}

/**
 * Sends a message through the agent's OpenAI-compatible gateway, which stores the conversation.
 * @throws BadGatewayError if the gateway refuses, breaks off or times out; GatewayAwayError.
 */
export async function* askGateway(
  gateway: Gateway,
  question: { readonly message: string; readonly conversation: string },
  signal: AbortSignal,
  timeoutMs = ANSWER_TIMEOUT_MS,
): AsyncGenerator<string> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  let length = 0;
  let empty = 0;
  let isConnected = false;
  try {
    const { status, body } = await boundedRequest({
      url: `http://127.0.0.1:${gateway.port}/v1/chat/completions`,
      headers: { authorization: `Bearer ${gateway.token}` },
      body: {
        model: 'openclaw/default',
        user: question.conversation,
        messages: [{ role: 'user', content: question.message }],
        stream: true,
      },
      accept: 'text/event-stream',
      maxBytes: MAX_ANSWER_BYTES,
      bytesPerSecond: BYTES_PER_SECOND,
      signal: bounded,
      onConnected: () => (isConnected = true),
    });
    if (status !== 200) throw new BadGatewayError(`The agent's gateway answered with ${status}`);
    if (!body) throw new BadGatewayError("The agent's gateway sent an invalid answer");
    for await (const data of eventsOf(body)) {
      if (data === '[DONE]') return;
      const piece = readChunk(data);
      length += piece.length;
      if (length > MAX_ANSWER_LENGTH) throw new BadGatewayError("The agent's answer is too long");
      if (piece !== '') yield piece;
      else if (++empty > MAX_EMPTY_EVENTS) {
        throw new BadGatewayError("The agent's gateway sent too many empty events");
      }
    }
    throw new BadGatewayError("The agent's gateway broke off its answer");
  } catch (error) {
    if (error instanceof BadGatewayError || signal.aborted) throw error;
    const Failure = isConnected ? BadGatewayError : GatewayAwayError;
    throw new Failure("The agent's gateway cannot be reached or did not answer in time", {
      cause: error,
    });
  }
}

/** Yields the data of each server-sent event. @throws ParseError for an event that is too long. */
async function* eventsOf(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const events: string[] = [];
  let fault: ParseError | undefined;
  const parser = createParser({
    maxBufferSize: MAX_ANSWER_LENGTH,
    onEvent: ({ data }) => events.push(data),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') fault = error;
    },
  });
  const decoder = new TextDecoder();
  for await (const piece of body) {
    parser.feed(decoder.decode(piece, { stream: true }));
    if (fault) throw fault;
    yield* events.splice(0);
  }
}

function readChunk(data: string): string {
  const parsed = tryParseJson(data);
  if (parsed === undefined) {
    throw new BadGatewayError("The agent's gateway sent an invalid answer");
  }
  const read = chunk.safeParse(parsed);
  if (!read.success || read.data.error !== undefined) {
    throw new BadGatewayError("The agent's gateway reported an error: retry later");
  }
  return read.data.choices?.[0]?.delta?.content ?? '';
}
