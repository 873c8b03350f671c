/** A message of a conversation, as OpenAI's chat completions take it. */
export interface ChatMessage {
  readonly role: string;
  /** Text, a list of parts (text, images), or none where an assistant only calls tools. */
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

/**
 * A chat completion as OpenAI's API takes it: the form in which every request comes here, and which
 * each provider's adapter turns into the provider's own. What is not named here is passed on.
 */
export interface ChatBody {
  readonly messages: readonly ChatMessage[];
  readonly stream?: boolean | undefined;
  readonly max_tokens?: number | undefined;
  readonly max_completion_tokens?: number | undefined;
  readonly [field: string]: unknown;
}

/** A chat completion for one model. */
export interface ChatRequest extends ChatBody {
  readonly model: string;
}

/** What a provider says that a call used. */
export interface TokenUsage {
  readonly inputTokens: number;
  /** Thinking included. */
  readonly outputTokens: number;
}

/** A whole answer. */
export interface Completion {
  /** The JSON of an OpenAI `chat.completion`. */
  readonly json: string;
  /** The assistant's text; empty where it only calls tools. */
  readonly content: string;
  /** Of all that is said in it, in UTF-8: text, thoughts and calls of tools. */
  readonly bytes: number;
  readonly usage: TokenUsage | undefined;
}
