import { createHash } from 'node:crypto';

/** Returns the etag of a file's content, which is the same wherever the content is. */
export const etagOf = (bytes: Uint8Array): string =>
  createHash('sha256').update(bytes).digest('base64url');
