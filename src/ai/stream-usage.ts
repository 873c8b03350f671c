import type { CompletionStream } from './ask-provider.js';
import type { ChatBody, TokenUsage } from './completion.js';
import { usageEstimate } from './token-bound.js';

/** What a stream has used so far: by what the provider says of it, and by its pieces. */
export class StreamUsage {
  readonly #request: ChatBody;
  readonly #stream: CompletionStream;
  #pieces = 0;
  #isComplete = false;

  constructor(request: ChatBody, stream: CompletionStream) {
    this.#request = request;
    this.#stream = stream;
  }

  /**
   * A piece is about a token. Some providers say at the beginning what they have used until then, so
   * that of a stream that is cut off the higher one counts.
   */
  get soFar(): TokenUsage {
    const said = this.#stream.usage();
    if (said === undefined) return usageEstimate(this.#request, this.#pieces);
    if (this.#isComplete) return said;
    return { ...said, outputTokens: Math.max(said.outputTokens, this.#pieces) };
  }

  countPiece(): void {
    this.#pieces++;
  }

  /** It has come to its end. */
  complete(): void {
    this.#isComplete = true;
  }
}
