import type { ChatRequest, Completion, TokenUsage } from '../../completion/completion.js';
import type { ProviderError } from '../../completion/provider-error.js';
import type { ProviderConfig } from '../../completion/provider-names.js';

/** An HTTP request to a provider; always a POST. */
export interface WireRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One server-sent event of a provider. */
export interface WireEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/** Reads the events of one streamed answer, in order. Has a state: one for each answer. */
export interface StreamReader {
  /**
   * @returns the OpenAI `chat.completion.chunk`s that this event comes to, each as JSON text; none
   *   for an event that says nothing to the client.
   * @throws ProviderError for an error in the stream, and for what makes no sense.
   */
  read(event: WireEvent): readonly string[];
  /** What the provider has said so far that the call uses. */
  readonly usage: TokenUsage | undefined;
  /** Of all that the model has said so far, in UTF-8: text, thoughts and calls of tools. */
  readonly bytes: number;
  /** Whether the provider has said that the answer is whole. */
  readonly ended: boolean;
  /** Whether nothing comes any more, and the connection need not be waited for. */
  readonly over: boolean;
}

/** Speaks one provider's own format; the conversation itself is in OpenAI's everywhere else. */
export interface ProviderAdapter {
  /** @param request its `model` is what the provider calls it; `stream` says which of the two. */
  request(provider: ProviderConfig, request: ChatRequest): WireRequest;
  /**
   * @param text the body of an answer with a 2xx status.
   * @throws ProviderError also when there is an error inside, or it makes no sense.
   */
  readAnswer(text: string, request: ChatRequest): Completion;
  openStream(request: ChatRequest): StreamReader;
  /** @param text the beginning of the body of an answer with another status. */
  readError(status: number, headers: Headers, text: string): ProviderError;
}
