import { randomUUID } from 'node:crypto';
import type { ChatRequest, TokenUsage } from '../../completion/completion.js';
import type { StreamReader, WireEvent } from '../shared/adapter.js';
import { bytesOf, ChunkWriter, type Used } from '../shared/openai-format.js';
import { finishReason, readGemini, readParts, readUsed, type GeminiCandidate } from './answer.js';

export class GeminiStream implements StreamReader {
  ended = false;
  bytes = 0;
  /** Always false: the usage can follow the end. */
  readonly over = false;
  readonly #chunks: ChunkWriter;
  #used: Used | undefined;
  #calls = 0;

  constructor(request: ChatRequest) {
    this.#chunks = new ChunkWriter(request, `chatcmpl-${randomUUID()}`, request.model);
  }

  get usage(): TokenUsage | undefined {
    return this.#used?.tokens;
  }

  read({ data }: WireEvent): readonly string[] {
    const { candidates, usageMetadata } = readGemini(data);
    const wasSent = this.ended && this.#used !== undefined;
    this.#used = readUsed(usageMetadata) ?? this.#used;
    // Events after the end carry nothing that a client could still use.
    const chunks = this.ended ? [] : this.#readCandidate(candidates?.[0]);
    if (this.ended && !wasSent) chunks.push(...this.#chunks.writeUsage(this.#used));
    return chunks;
  }

  #readCandidate(candidate: GeminiCandidate | undefined): string[] {
    const chunks: string[] = [];
    const { text, calls, thoughts } = readParts(candidate);
    this.bytes += bytesOf(text, thoughts, ...calls.map((call) => call.function.arguments));
    if (text !== '' || calls.length > 0) {
      const indexed = calls.map((call) => ({ index: this.#calls++, ...call }));
      chunks.push(
        this.#chunks.write({
          ...(text !== '' && { content: text }),
          ...(calls.length > 0 && { tool_calls: indexed }),
        }),
      );
    }
    if (candidate?.finishReason) {
      const { hasWritten } = this.#chunks;
      const called = this.#calls > 0;
      const reason = finishReason(candidate.finishReason, { said: hasWritten, called });
      this.ended = true;
      chunks.push(this.#chunks.write(hasWritten ? {} : { content: '' }, reason));
    }
    return chunks;
  }
}
