import { isObject } from '../../../lib/json.js';
import type { ChatMessage } from '../../completion/completion.js';

/** Text of a user's message without content, which providers refuse. */
export const NO_TEXT = '(no text)';

/** Text of the user after an answer, where a provider refuses a conversation that ends with an answer. */
export const CONTINUE = 'Continue.';

/** Text of an answer between tool results and another message, where a provider requires an answer. */
export const NO_ANSWER = '(no answer)';

/** Text in place of an image that the model does not accept. */
const NO_IMAGE = '(An image was left out: this model cannot read it.)';

/** Introduction of images that a tool returned, where a provider accepts only texts as results. */
export const RESULT_IMAGES = 'Images of the tool results:';

export const isBlank = (text: unknown): boolean => typeof text === 'string' && text.trim() === '';

/** Returns the position of the first message after the last answer. */
export function beginOfTurn(messages: readonly ChatMessage[]): number {
  return messages.findLastIndex(({ role }) => role === 'assistant') + 1;
}

/** Replaces images that a model does not read by a text. */
export function withReadImages(content: unknown, isRead: (part: unknown) => boolean): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((part: unknown) => (isRead(part) ? part : { type: 'text', text: NO_IMAGE }));
}

/**
 * Reports whether images of other types are left out of a message. The user learns of those in the current
 * message by an error.
 */
export const isLenient = ({ role }: ChatMessage, at: number, currentTurn: number): boolean =>
  at < currentTurn || role === 'tool';

/** Reports whether a part is anything but an image inside the message of another type, or without data. */
export function hasTypeOf(types: ReadonlySet<string>, part: unknown): boolean {
  const type = imageTypeOf(part);
  return type === undefined || types.has(type);
}

/**
 * Returns the media type of an image inside the message, empty for one without data, such as a screenshot that
 * failed; undefined for an image behind an address.
 */
function imageTypeOf(part: unknown): string | undefined {
  const image = isObject(part) && isObject(part.image_url) ? part.image_url : {};
  const url = typeof image.url === 'string' ? image.url.slice(0, MAX_HEAD_LENGTH) : '';
  if (/^data:[^,]*,\s*$/i.test(url)) return '';
  return /^data:([^;,]+)/i.exec(url)?.[1]?.toLowerCase();
}

/** Maximum number of characters of a data URL that are searched; the rest can be megabytes. */
const MAX_HEAD_LENGTH = 200;
