/** A message in OpenAI's chat completion format. */
export interface ChatMessage {
  readonly role: string;
  /** Text or a list of parts (text, images); absent if the assistant only calls tools. */
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

/** A request in OpenAI's format, which adapters convert to their provider's. Unnamed fields are passed on. */
export interface ChatBody {
  readonly messages: readonly ChatMessage[];
  readonly stream?: boolean | undefined;
  readonly max_tokens?: number | undefined;
  readonly max_completion_tokens?: number | undefined;
  readonly [field: string]: unknown;
}

export interface ChatRequest extends ChatBody {
  readonly model: string;
}

/** The usage that a provider reports for a call. */
export interface TokenUsage {
  readonly inputTokens: number;
  /** Input tokens that came from the provider's prompt cache, at a lower rate. */
  readonly cacheReadTokens?: number | undefined;
  /** Input tokens that the provider wrote to its prompt cache, at a higher rate. */
  readonly cacheWriteTokens?: number | undefined;
  /** Includes reasoning. */
  readonly outputTokens: number;
}

export interface Completion {
  /** The JSON of an OpenAI `chat.completion`. */
  readonly json: string;
  /** The assistant's text; empty if it only calls tools. */
  readonly content: string;
  /** UTF-8 bytes of the whole output: text, reasoning and tool calls. */
  readonly bytes: number;
  readonly usage: TokenUsage | undefined;
}
