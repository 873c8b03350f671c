import type { CompletionStream } from './ask-provider.js';
import type { ChatBody, TokenUsage } from '../completion/completion.js';
import { unseenUsage, usageEstimate } from '../completion/token-bound.js';

/** What a stream has used so far: by what the provider says of it, and by what has come of it. */
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
   * A piece is about a token, and four bytes are at least one; while nothing is said, a model thinks.
   * Some providers say at the beginning what they have used until then, so that of a stream that is
   * cut off the highest one counts.
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

  /** It has come to its end. */
  complete(): void {
    this.#isComplete = true;
  }

  #seen(): TokenUsage {
    const bytes = this.#stream.bytes();
    if (bytes === 0 && !this.#isComplete) return unseenUsage(this.#request, this.#began);
    return usageEstimate(this.#request, Math.max(this.#pieces, Math.ceil(bytes / 4)));
  }
}
