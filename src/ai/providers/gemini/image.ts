import { badRequest } from './input.js';
import type { JsonObject } from '../../../lib/json.js';

/** Longer than the head of any real data URL. */
const MAX_DATA_HEAD_LENGTH = 200;

/**
 * The part for OpenAI's `image_url`: what is inside a data URL, or the address.
 *
 * @throws ProviderError `bad_request` for anything else.
 */
export function imagePart(url: string): JsonObject {
  if (/^https?:\/\//i.test(url)) {
    return { fileData: { fileUri: url, mimeType: mimeTypeOf(url) } };
  }
  // A data URL is megabytes long: only its head is looked through.
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

/** What a file's name tells; Gemini finds out itself where that is nothing. */
function mimeTypeOf(url: string): string | undefined {
  const [, extension] = /\.(\w+)$/.exec(url.split(/[?#]/, 1)[0] ?? '') ?? [];
  return IMAGE_TYPES.get(extension?.toLowerCase() ?? '');
}
