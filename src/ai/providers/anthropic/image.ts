import { unsupported } from './errors.js';
import { isObject, type JsonObject } from '../../../lib/json.js';
import { hasTypeOf } from '../shared/left-out.js';

/** Types of images inside a message that Anthropic accepts. */
const MEDIA_TYPES: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

/** Reports whether a part is anything but an image of a type, or behind an address, that Anthropic refuses. */
export const isTaken = (part: unknown): boolean =>
  hasTypeOf(MEDIA_TYPES, part) && !/^http:/i.test(addressIn(part));

/** Returns the beginning of an image's address, which can be megabytes; empty for any other part. */
function addressIn(part: unknown): string {
  const image = isObject(part) && isObject(part.image_url) ? part.image_url : {};
  return typeof image.url === 'string' ? image.url.slice(0, MAX_HEAD_LENGTH) : '';
}

/**
 * Converts OpenAI's `image_url` to an image `source`: the content of a data: URL, or the https: address.
 * @throws ProviderError `bad_request` for anything else, and for image types that Anthropic refuses.
 */
export function imageSource(image: unknown): JsonObject {
  const url = isObject(image) ? image.url : undefined;
  if (typeof url !== 'string') throw unsupported();
  if (/^data:/i.test(url)) return inside(url);
  if (!/^https:/i.test(url) || !URL.canParse(url)) throw unsupported();
  return { type: 'url', url };
}

/** Characters; the head holds type and parameters. */
const MAX_HEAD_LENGTH = 200;

/** Splits at the comma instead of matching a pattern, since the URL holds megabytes. */
function inside(url: string): JsonObject {
  const comma = url.slice(0, MAX_HEAD_LENGTH).indexOf(',');
  if (comma < 0) throw unsupported();
  const [mediaType = '', ...parameters] = url.slice('data:'.length, comma).toLowerCase().split(';');
  const data = url.slice(comma + 1);
  if (parameters.at(-1) !== 'base64' || data === '' || !MEDIA_TYPES.has(mediaType))
    throw unsupported();
  return { type: 'base64', media_type: mediaType, data };
}
