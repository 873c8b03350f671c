/** Maximum number of letters of a header field that is read; a longer one counts as malformed. */
const MAX_FIELD = 16_384;

/**
 * Removes the comments of a header field (RFC 5322), and writes each quoted text as `quoted` returns it. Undefined
 * for a field that is malformed or too long.
 */
export function withoutComments(
  field: string,
  quoted: (text: string) => string,
): string | undefined {
  if (field.length > MAX_FIELD) return undefined;
  let plain = '';
  let depth = 0;
  let quote: string | undefined;
  for (let at = 0; at < field.length; at++) {
    const letter = field.charAt(at);
    if (letter === '\\' && (depth > 0 || quote !== undefined)) {
      at++;
      if (quote !== undefined) quote += field.charAt(at);
    } else if (quote !== undefined) {
      if (letter !== '"') quote += letter;
      else {
        plain += quoted(quote);
        quote = undefined;
      }
    } else if (letter === '(') depth++;
    else if (depth > 0) {
      if (letter !== ')') continue;
      depth--;
      plain += ' ';
    } else if (letter === '"') quote = '';
    else if (letter === ')') return undefined;
    else plain += letter;
  }
  return depth > 0 || quote !== undefined ? undefined : plain;
}

/** Cuts a text to a number of bytes in UTF-8, never within a character. */
export function cutToBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = most;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
