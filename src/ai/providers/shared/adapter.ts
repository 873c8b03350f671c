import type { ChatRequest, Completion, TokenUsage } from '../../completion/completion.js';
import type { ProviderError } from '../../completion/provider-error.js';
import type { ProviderConfig } from '../../completion/provider-names.js';

/** An HTTP POST request to a provider. */
export interface WireRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A server-sent event of a provider. */
export interface WireEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/** A stateful reader of a streamed answer's events, in order. Each answer needs its own reader. */
export interface StreamReader {
  /**
   * Translates an event into OpenAI `chat.completion.chunk`s, each as JSON text.
   *
   * @returns an empty list for an event that carries nothing for the client.
   * @throws ProviderError for an error in the stream or a malformed event.
   */
  read(event: WireEvent): readonly string[];
  /** The usage that the provider has reported so far. */
  readonly usage: TokenUsage | undefined;
  /** UTF-8 bytes of all model output so far: text, thinking and tool calls. */
  readonly bytes: number;
  /** True if the provider has marked the answer as complete. */
  readonly ended: boolean;
  /** True if no more events follow, so the connection need not be read further. */
  readonly over: boolean;
}

/** Translates between OpenAI's format, used everywhere else, and a provider's own format. */
export interface ProviderAdapter {
  /**
   * Builds the HTTP request.
   *
   * @param request with `model` as the provider names it; `stream` selects a stream or a whole answer.
   */
  request(provider: ProviderConfig, request: ChatRequest): WireRequest;
  /**
   * Reads a whole answer.
   *
   * @param text the body of a 2xx response.
   * @throws ProviderError also if the body holds an error or is malformed.
   */
  readAnswer(text: string, request: ChatRequest): Completion;
  openStream(request: ChatRequest): StreamReader;
  /**
   * Reads a failed response.
   *
   * @param text the beginning of the body of a non-2xx response.
   */
  readError(status: number, headers: Headers, text: string): ProviderError;
}
