/**
 * Text as PostgreSQL's JSON takes it: halves of characters, and the character of code 0, are
 * replaced. What programs write may hold anything.
 */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\uFFFD');
}
