export type JsonObject = Readonly<Record<string, unknown>>;

/** Reports whether the value is an object, neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses JSON; undefined if invalid. The parser's error is dropped: it quotes the text. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Matches each escape of JSON, surrogate pairs as one; the group is half a pair. */
const ESCAPES =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)/gs;

/** Returns JSON whose texts have U+FFFD in place of half a surrogate pair, which no UTF-8 can hold. */
export function withWholePairs(json: string): string {
  if (!/\\u[dD][89a-fA-F]/.test(json)) return json;
  return json.replace(ESCAPES, (escape, half?: string) =>
    half === undefined ? escape : '\\ufffd',
  );
}
