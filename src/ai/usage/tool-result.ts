import { isObject, tryParseJson } from '../../lib/json.js';

/** Reports whether the content of a tool's result states that the call has failed. */
export function isFailedResult(content: unknown): boolean {
  const text = textOf(content);
  if (text.startsWith('Error')) return true;
  const result = /^\s*\{/.test(text) ? tryParseJson(text) : undefined;
  if (!isObject(result)) return false;
  const { error, isError, ok, status, success } = result;
  return (
    isError === true ||
    ok === false ||
    success === false ||
    status === 'error' ||
    (error !== undefined && error !== null)
  );
}

/** Returns the text of a message's content, which may be a list of parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const texts = content.map((part: unknown) => (isObject(part) ? part.text : undefined));
  return texts.filter((text) => typeof text === 'string').join('');
}
