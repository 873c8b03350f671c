import { unsupported } from './errors.js';
import { isObject, type JsonObject } from '../../../lib/json.js';

const MEDIA_TYPES: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

/**
 * The `source` of an image from OpenAI's `image_url`: what is inside a data: URL, or the address.
 *
 * @throws ProviderError `bad_request` for anything else, and for kinds that are not taken there.
 */
export function imageSource(image: unknown): JsonObject {
  const url = isObject(image) ? image.url : undefined;
  if (typeof url !== 'string') throw unsupported();
  if (/^data:/i.test(url)) return inside(url);
  if (!/^https?:/i.test(url) || !URL.canParse(url)) throw unsupported();
  return { type: 'url', url };
}

/** Characters before the data: its type and parameters. */
const MAX_HEAD_LENGTH = 200;

/** No pattern over the whole: it holds megabytes. */
function inside(url: string): JsonObject {
  const comma = url.slice(0, MAX_HEAD_LENGTH).indexOf(',');
  if (comma < 0) throw unsupported();
  const [mediaType = '', ...parameters] = url.slice('data:'.length, comma).toLowerCase().split(';');
  const data = url.slice(comma + 1);
  if (parameters.at(-1) !== 'base64' || data === '' || !MEDIA_TYPES.has(mediaType))
    throw unsupported();
  return { type: 'base64', media_type: mediaType, data };
}
