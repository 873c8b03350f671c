import { tryParseJson } from '../lib/json.js';

/** Strings, and what pages write around and into JSON: comments and the marks of comments and CDATA. */
const NOTES =
  /"(?:[^"\\]|\\[^])*"?|\ufeff|\/\*(?:[^]*?\*\/|[^]*)|\/\/[^\n]*|<!--|-->|<!\[?CDATA\[|\]\]>/g;

/** Strings, commas and colons before a closing bracket or another comma, and semicolons. */
const SIGNS = /"(?:[^"\\]|\\[^])*"?|[,:](?=\s*[}\],])|;/g;

/** Backslashes that begin no escape of JSON, after those that do. */
const ESCAPES = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|\\/g;

/** Parses JSON as pages have it: with comments, line breaks in strings, commas too many and values too few. */
export function parseLenientJson(text: string): unknown {
  const strict = tryParseJson(text);
  if (strict !== undefined) return strict;
  const bare = text.replace(NOTES, (part) => (part.startsWith('"') ? withoutControls(part) : ' '));
  return tryParseJson(
    bare.replace(SIGNS, (part) => (part.startsWith('"') ? part : part === ':' ? ':null' : '')),
  );
}

/** Writes a string's line breaks and other controls as JSON does, without escapes that JSON lacks. */
const withoutControls = (part: string): string =>
  part
    .replace(ESCAPES, (escape) => (escape === '\\' ? '' : escape))
    .replace(/[\u0000-\u001f]/g, (sign) => JSON.stringify(sign).slice(1, -1));
