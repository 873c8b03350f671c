/**
 * Replaces lone surrogates and NUL characters, which PostgreSQL's JSON does not accept; the output of
 * programs may contain them.
 */
export function sanitizeForJsonb(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\uFFFD');
}
