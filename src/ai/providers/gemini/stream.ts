import { randomUUID } from 'node:crypto';
import type { ChatRequest, TokenUsage } from '../../completion/completion.js';
import type { StreamReader, WireEvent } from '../shared/adapter.js';
import { bytesOf, ChunkWriter, type Used } from '../shared/openai-format.js';
import {
  finishReason,
  readGemini,
  readParts,
  readUsed,
  refuseFailed,
  type GeminiCandidate,
} from './answer.js';

export class GeminiStream implements StreamReader {
  ended = false;
  bytes = 0;
  /** Always false: text and usage can follow the finish reason. */
  readonly over = false;
  readonly #chunks: ChunkWriter;
  #used: Used | undefined;
  #reason: string | undefined;
  #calls = 0;

  readonly #request: ChatRequest;

  constructor(request: ChatRequest) {
    this.#request = request;
    this.#chunks = new ChunkWriter(request, `chatcmpl-${randomUUID()}`, request.model);
  }

  get usage(): TokenUsage | undefined {
    return this.#used?.tokens;
  }

  read({ data }: WireEvent): readonly string[] {
    const { candidates, usageMetadata } = readGemini(data);
    this.#used = readUsed(usageMetadata) ?? this.#used;
    const [candidate] = candidates ?? [];
    const chunks = this.#readParts(candidate);
    if (candidate?.finishReason) {
      refuseFailed(candidate.finishReason);
      // Text can follow an early reason, so the chunk with the reason waits for the last event.
      this.#reason = candidate.finishReason;
      this.ended = true;
    }
    return chunks;
  }

  finish(): readonly string[] {
    const { hasWritten } = this.#chunks;
    const reason = finishReason(this.#reason, { said: hasWritten, called: this.#calls > 0 });
    return [
      this.#chunks.write(hasWritten ? {} : { content: '' }, reason),
      ...this.#chunks.writeUsage(this.#used),
    ];
  }

  #readParts(candidate: GeminiCandidate | undefined): string[] {
    const { text, calls, thoughts } = readParts(candidate, this.#request);
    this.bytes += bytesOf(text, thoughts, ...calls.map((call) => call.function.arguments));
    if (text === '' && calls.length === 0) return [];
    const indexed = calls.map((call) => ({ index: this.#calls++, ...call }));
    return [
      this.#chunks.write({
        ...(text !== '' && { content: text }),
        ...(calls.length > 0 && { tool_calls: indexed }),
      }),
    ];
  }
}
