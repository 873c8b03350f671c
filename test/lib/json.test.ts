import { expect, test } from 'vitest';
import { isObject, tryParseJson } from '../../src/lib/json.js';

test.each([
  [{}, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  ['{}', false],
])('recognises %j as an object: %j', (value, answer) => {
  expect(isObject(value)).toBe(answer);
});

test('parses invalid JSON as undefined and JSON null as null', () => {
  expect(tryParseJson('{"a": [1]}')).toEqual({ a: [1] });
  expect(tryParseJson('null')).toBeNull();
  for (const text of ['', '{', 'undefined']) expect(tryParseJson(text)).toBeUndefined();
});
