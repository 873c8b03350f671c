import type { ChatRequest, Completion, TokenUsage } from '../../completion/completion.js';
import type { ProviderError } from '../../completion/provider-error.js';
import type { ListedModel } from './model-list.js';
import type { ProviderConfig } from '../../completion/provider-names.js';

export interface WireRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A request without a body. */
export type WireQuestion = Pick<WireRequest, 'url' | 'headers'>;

export interface WireEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/** Data of the event by which OpenAI's format marks the end. */
export const DONE = '[DONE]';

/** A stateful reader of one answer's events, in order. */
export interface StreamReader {
  /**
   * Translates an event into OpenAI `chat.completion.chunk`s, as JSON.
   * @throws ProviderError for an error in the stream or a malformed event.
   */
  read(event: WireEvent): readonly string[];
  /**
   * Returns the last chunks. Called once `ended` is true and no more events follow.
   * @throws ProviderError if there was no answer.
   */
  finish(): readonly string[];
  /** The usage that the provider has reported so far. */
  readonly usage: TokenUsage | undefined;
  /** UTF-8 bytes of all model output so far: text, thinking and tool calls. */
  readonly bytes: number;
  /** The provider has marked the answer as complete. */
  readonly ended: boolean;
  /** No more events follow, so the connection need not be read further. */
  readonly over: boolean;
}

/** Translates between OpenAI's format, used everywhere else, and a provider's own format. */
export interface ProviderAdapter {
  /** Returns as many answers as `n` requests; others return one. */
  readonly takesSeveralAnswers: boolean;
  /** Reports whether a model reads images; without them it gets a text in their place. */
  takesImages(provider: ProviderConfig, model: string): boolean;
  /** Builds the HTTP request; `request.model` is the provider's name, `stream` selects the kind of answer. */
  request(provider: ProviderConfig, request: ChatRequest): WireRequest;
  /** Reads the body of a 2xx response. @throws ProviderError also if the body is an error or malformed. */
  readAnswer(text: string, request: ChatRequest): Completion;
  openStream(request: ChatRequest): StreamReader;
  /** Builds the request for the list of models. */
  listRequest(provider: ProviderConfig): WireQuestion;
  /** Reads the list of models; undefined if the body is none. */
  readList(body: unknown): readonly ListedModel[] | undefined;
  /** Builds a request that needs a valid key, for a provider whose list is public. */
  keyRequest?(provider: ProviderConfig): WireQuestion;
  /** Reads the beginning of the body of a failed response. */
  readError(status: number, headers: Headers, text: string): ProviderError;
}
