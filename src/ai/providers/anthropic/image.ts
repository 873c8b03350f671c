import { unsupported } from './errors.js';
import { isObject, type JsonObject } from '../../../lib/json.js';

/** Types of images inside a message that Anthropic takes. */
export const MEDIA_TYPES: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

/**
 * Converts OpenAI's `image_url` to an image `source`: the content of a data: URL, or the address.
 * @throws ProviderError `bad_request` for anything else, and for image types that Anthropic refuses.
 */
export function imageSource(image: unknown): JsonObject {
  const url = isObject(image) ? image.url : undefined;
  if (typeof url !== 'string') throw unsupported();
  if (/^data:/i.test(url)) return inside(url);
  if (!/^https?:/i.test(url) || !URL.canParse(url)) throw unsupported();
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
