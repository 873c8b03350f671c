import { tryParseJson } from '../lib/json.js';

/** Strings, and what pages write around and into JSON: comments and the marks of comments and CDATA. */
const NOTES = /"(?:[^"\\]|\\[^])*"?|\/\*(?:[^]*?\*\/|[^]*)|\/\/[^\n]*|<!--|-->|<!\[?CDATA\[|\]\]>/g;

/** Strings, and commas before a closing bracket or another comma, and semicolons. */
const COMMAS = /"(?:[^"\\]|\\[^])*"?|,(?=\s*[}\],])|;/g;

/** Parses JSON as pages have it, with comments, line breaks in strings and commas too many. */
export function parseLenientJson(text: string): unknown {
  const strict = tryParseJson(text);
  if (strict !== undefined) return strict;
  const bare = text.replace(NOTES, (part) => (part.startsWith('"') ? withoutControls(part) : ' '));
  return tryParseJson(bare.replace(COMMAS, (part) => (part.startsWith('"') ? part : '')));
}

/** Writes a string's line breaks and other controls as JSON does. */
const withoutControls = (part: string): string =>
  part.replace(/[\u0000-\u001f]/g, (sign) => JSON.stringify(sign).slice(1, -1));
