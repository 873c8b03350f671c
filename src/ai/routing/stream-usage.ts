import type { CompletionStream } from './call-provider.js';
import type { ChatBody, TokenUsage } from '../completion/completion.js';
import { estimateByElapsedTime, usageEstimate } from '../completion/token-bound.js';

/** The usage so far, as reported by the provider and as estimated from the output. */
export class StreamUsage {
  readonly #request: ChatBody;
  readonly #stream: CompletionStream;
  readonly #began = performance.now();
  #pieces = 0;
  #isComplete = false;

  constructor(request: ChatBody, stream: CompletionStream) {
    this.#request = request;
    this.#stream = stream;
  }

  /**
   * Returns the usage so far. A piece is about one token; so are four bytes. Time without output counts as
   * thinking. Some providers report early totals, so the higher count wins for a stream that is cut off.
   */
  get soFar(): TokenUsage {
    const said = this.#stream.usage();
    if (said !== undefined && this.#isComplete) return said;
    const seen = this.#seen();
    return said === undefined
      ? seen
      : { ...said, outputTokens: Math.max(said.outputTokens, seen.outputTokens) };
  }

  countPiece(): void {
    this.#pieces++;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  complete(): void {
    this.#isComplete = true;
  }

  #seen(): TokenUsage {
    const bytes = this.#stream.bytes();
    if (bytes === 0 && !this.#isComplete) return estimateByElapsedTime(this.#request, this.#began);
    return usageEstimate(this.#request, Math.max(this.#pieces, Math.ceil(bytes / 4)));
  }
}
