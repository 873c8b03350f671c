/** Replaces lone surrogates and NUL, which PostgreSQL's JSON rejects and programs may print. */
export function sanitizeForJsonb(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\uFFFD');
}
