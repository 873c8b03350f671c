import { expect, test } from 'vitest';
import { reasonOf } from '../../src/lib/reason-of.js';

test('returns the message of an error, else its code, else the reason of the driver', () => {
  expect(reasonOf(new TypeError('a defect'))).toBe('a defect');
  const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
  expect(reasonOf(refused)).toBe('ECONNREFUSED');
  expect(reasonOf(Object.assign(new Error(''), { parent: refused }))).toBe('ECONNREFUSED');
  expect(reasonOf(new RangeError(''))).toBe('RangeError');
  expect(reasonOf('a text')).toBe('a text');
});

test('returns the first reason of a connection that several addresses refused', () => {
  const inside = [new Error('connect ECONNREFUSED ::1:5432'), new Error('connect ECONNREFUSED')];
  const refused = Object.assign(new AggregateError(inside), { code: 'ECONNREFUSED' });
  expect(reasonOf(refused)).toBe('connect ECONNREFUSED ::1:5432');
  expect(reasonOf(Object.assign(new Error(''), { parent: refused }))).toBe(
    'connect ECONNREFUSED ::1:5432',
  );
});
