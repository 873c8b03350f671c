import { expect, test } from 'vitest';
import { isObject, tryParseJson } from '../../src/lib/json.js';

test.each([
  [{}, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  ['{}', false],
])('that %j is an object is %j', (value, answer) => {
  expect(isObject(value)).toBe(answer);
});

test('what is no JSON is undefined, and null is JSON', () => {
  expect(tryParseJson('{"a": [1]}')).toEqual({ a: [1] });
  expect(tryParseJson('null')).toBeNull();
  for (const text of ['', '{', 'undefined']) expect(tryParseJson(text)).toBeUndefined();
});
