import { badRequest } from './input.js';
import type { JsonObject } from '../../../lib/json.js';

/** Types of images inside a message that Gemini accepts. */
export const MEDIA_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/webp',
  'image/heic',
  'image/heif',
]);

/** Characters; real heads are shorter. */
const MAX_DATA_HEAD_LENGTH = 200;

/** Converts an `image_url`: a data URL's content, or the address. @throws ProviderError `bad_request` */
export function imagePart(url: string): JsonObject {
  if (/^https?:\/\//i.test(url)) {
    return { fileData: { fileUri: url, mimeType: mimeTypeOf(url) } };
  }
  // A data URL holds megabytes, so only its head is searched.
  const head = url.slice(0, MAX_DATA_HEAD_LENGTH);
  const [whole, mimeType] = /^data:(image\/[^;,]+)(?:;[^;,]+)*;base64,/i.exec(head) ?? [];
  if (whole === undefined) throw badRequest();
  return { inlineData: { mimeType, data: url.slice(whole.length) } };
}

const IMAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
]);

/** Returns the media type for the file name's extension; without one, Gemini detects the type. */
function mimeTypeOf(url: string): string | undefined {
  const [, extension] = /\.(\w+)$/.exec(url.split(/[?#]/, 1)[0] ?? '') ?? [];
  return IMAGE_TYPES.get(extension?.toLowerCase() ?? '');
}
