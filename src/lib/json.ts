export type JsonObject = Readonly<Record<string, unknown>>;

/** Reports whether the value is an object, neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses JSON and returns undefined for invalid text. The parser's error is dropped, because its message
 * quotes the text.
 */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
