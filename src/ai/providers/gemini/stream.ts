import { randomUUID } from 'node:crypto';
import type { ChatRequest, TokenUsage } from '../../completion.js';
import type { StreamReader, WireEvent } from '../adapter.js';
import { finishReason, readGemini, readParts, readUsage, type GeminiCandidate } from './answer.js';
import { isObject } from '../../../json.js';

/** Turns the events of a `streamGenerateContent` into OpenAI's chunks. */
export class GeminiStream implements StreamReader {
  usage: TokenUsage | undefined;
  ended = false;
  /** What was used can follow the end. */
  readonly over = false;

  private readonly head: object;
  /** Whether the client asked for a last chunk that tells what was used. */
  private readonly includeUsage: boolean;
  private openAiUsage: object | undefined;
  private begun = false;
  private calls = 0;

  constructor({ model, stream_options: options }: ChatRequest) {
    this.head = {
      id: `chatcmpl-${randomUUID()}`,
      object: 'chat.completion.chunk',
      created: Math.floor(Date.now() / 1000),
      model,
    };
    this.includeUsage = isObject(options) && options.include_usage === true;
  }

  read({ data }: WireEvent): readonly string[] {
    const { candidates, usageMetadata } = readGemini(data);
    const wasSent = this.ended && this.openAiUsage !== undefined;
    const used = readUsage(usageMetadata);
    if (used) {
      this.usage = used.usage;
      this.openAiUsage = used.openAi;
    }
    // After the end there comes nothing that a client could still take up.
    const chunks = this.ended ? [] : this.readCandidate(candidates?.[0]);
    if (this.ended && this.includeUsage && this.openAiUsage && !wasSent) {
      chunks.push(JSON.stringify({ ...this.head, choices: [], usage: this.openAiUsage }));
    }
    return chunks;
  }

  private readCandidate(candidate: GeminiCandidate | undefined): string[] {
    const chunks: string[] = [];
    const { text, calls } = readParts(candidate);
    const said = text !== '' || calls.length > 0;
    if (said) {
      chunks.push(
        this.chunk(
          {
            ...(text !== '' && { content: text }),
            ...(calls.length > 0 && {
              tool_calls: calls.map((call) => ({ index: this.calls++, ...call })),
            }),
          },
          null,
        ),
      );
    }
    if (candidate?.finishReason) {
      const reason = finishReason(candidate.finishReason, {
        said: this.begun,
        called: this.calls > 0,
      });
      this.ended = true;
      chunks.push(this.chunk(this.begun ? {} : { content: '' }, reason));
    }
    return chunks;
  }

  private chunk(delta: object, reason: string | null): string {
    const first = !this.begun;
    this.begun = true;
    return JSON.stringify({
      ...this.head,
      choices: [
        {
          index: 0,
          delta: first ? { role: 'assistant', ...delta } : delta,
          logprobs: null,
          finish_reason: reason,
        },
      ],
      ...(this.includeUsage && { usage: null }),
    });
  }
}
