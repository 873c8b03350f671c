import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import { BadGatewayError } from '../errors.js';
import { tryParseJson } from '../json.js';

/** Milliseconds an agent may take for a whole answer, tools and all. */
const ANSWER_TIMEOUT_MS = 5 * 60_000;

/** An answer that is longer is cut off as a fault of the gateway. */
const MAX_ANSWER_LENGTH = 1024 * 1024;

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

/**
 * Asks an agent through its gateway's OpenAI-compatible endpoint, and yields the answer in pieces.
 * The gateway keeps the conversation: only the new message is sent.
 *
 * @throws BadGatewayError when the gateway refuses, breaks off or takes too long.
 */
export async function* askGateway(
  gateway: Gateway,
  question: { readonly message: string; readonly conversation: string },
  signal: AbortSignal,
): AsyncGenerator<string> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
  let length = 0;
  try {
    const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        model: 'openclaw/default',
        user: question.conversation,
        messages: [{ role: 'user', content: question.message }],
        stream: true,
      }),
      signal: bounded,
    });
    if (!response.ok || !response.body) {
      await response.body?.cancel();
      throw new BadGatewayError(`The agent's gateway answered with ${response.status}`);
    }
    const events = response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream({ maxBufferSize: MAX_ANSWER_LENGTH }));
    for await (const { data } of events) {
      if (data === '[DONE]') return;
      const piece = readChunk(data);
      length += piece.length;
      if (length > MAX_ANSWER_LENGTH) throw new BadGatewayError("The agent's answer is too long");
      if (piece !== '') yield piece;
    }
    throw new BadGatewayError("The agent's gateway broke off its answer");
  } catch (error) {
    if (error instanceof BadGatewayError || signal.aborted) throw error;
    throw new BadGatewayError("The agent's gateway cannot be reached or did not answer in time", {
      cause: error,
    });
  }
}

function readChunk(data: string): string {
  const parsed = tryParseJson(data);
  if (parsed === undefined) {
    throw new BadGatewayError("The agent's gateway sent what is not an answer");
  }
  const read = chunk.safeParse(parsed);
  if (!read.success || read.data.error !== undefined) {
    throw new BadGatewayError("The agent's gateway could not answer");
  }
  return read.data.choices?.[0]?.delta?.content ?? '';
}
