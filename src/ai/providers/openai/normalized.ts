import { isObject, type JsonObject } from '../../../lib/json.js';

/**
 * Returns a body whose messages or deltas have the fields that clients of OpenAI expect; the same body if
 * nothing differs, as in nearly every chunk.
 */
export function normalized(body: unknown, field: 'delta' | 'message'): unknown {
  if (!isObject(body) || !Array.isArray(body.choices)) return body;
  const choices: readonly unknown[] = body.choices;
  if (!choices.some((choice) => isObject(choice) && isUnusual(choice[field]))) return body;
  return {
    ...body,
    choices: choices.map((choice) =>
      isObject(choice) && isUnusual(choice[field])
        ? { ...choice, [field]: usual(choice[field]) }
        : choice,
    ),
  };
}

const isUnusual = (said: unknown): said is JsonObject =>
  isObject(said) &&
  (said.role === '' ||
    said.role === null ||
    isEmpty(said.tool_calls) ||
    Array.isArray(said.content));

function usual({ role, tool_calls: calls, content, ...others }: JsonObject): JsonObject {
  return {
    ...(role !== '' && role !== null && role !== undefined && { role }),
    ...(Array.isArray(content) ? textsOf(content) : content !== undefined && { content }),
    ...(calls !== undefined && !isEmpty(calls) && { tool_calls: calls }),
    ...others,
  };
}

const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;

/** Joins the texts of a content that is a list of parts, with thinking in the field that others use. */
function textsOf(parts: readonly unknown[]): JsonObject {
  let content = '';
  let thoughts = '';
  for (const part of parts) {
    const { thinking } = isObject(part) ? part : {};
    if (thinking === undefined) content += textOf(part);
    else thoughts += Array.isArray(thinking) ? thinking.map(textOf).join('') : textOf(thinking);
  }
  return { content, ...(thoughts !== '' && { reasoning_content: thoughts }) };
}

function textOf(part: unknown): string {
  if (typeof part === 'string') return part;
  return isObject(part) && typeof part.text === 'string' ? part.text : '';
}
