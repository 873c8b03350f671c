import { isObject } from '../../../lib/json.js';
import type { ChatMessage, ChatRequest } from '../../completion/completion.js';

const ASKS = { role: 'system', content: 'Answer in JSON.' };

/**
 * Returns the messages with a request for JSON, if the answer is to be JSON and no message requests JSON:
 * OpenAI refuses such a request.
 */
export function withJsonAsked({
  messages,
  response_format: format,
}: ChatRequest): readonly ChatMessage[] {
  const isAny = isObject(format) && format.type === 'json_object';
  return !isAny || messages.some(asksForJson) ? messages : [ASKS, ...messages];
}

function asksForJson({ content }: ChatMessage): boolean {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }];
  return parts.some(
    (part) => isObject(part) && typeof part.text === 'string' && /json/i.test(part.text),
  );
}
