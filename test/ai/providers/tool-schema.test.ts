import { expect, test } from 'vitest';
import { parameterSchema } from '../../../src/ai/providers/shared/tool-schema.js';

const text = { type: 'string' };

test('a schema of an object is passed on as it is', () => {
  const schema = {
    type: 'object',
    properties: { type: text, items: text, a: { $ref: '#/$defs/A' }, b: { anyOf: [text] } },
    required: ['a'],
    $defs: { A: { type: ['string', 'null'], enum: ['x', null], 'x-own': 1 } },
  };
  expect(parameterSchema(schema)).toEqual(schema);
});

test('a schema by reference becomes the properties that it names', () => {
  const definitions = { In: { type: 'object', properties: { a: text } } };
  expect(parameterSchema({ $ref: '#/definitions/In', definitions })).toEqual({
    type: 'object',
    properties: { a: text },
    definitions,
  });
});

test('alternatives keep all forms of a property', () => {
  const $defs = {
    Cat: { type: 'object', properties: { kind: { const: 'cat' }, name: text } },
    Dog: { allOf: [{ properties: { kind: { const: 'dog' }, name: text } }] },
  };
  const oneOf = [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }, { $ref: '#/$defs/None' }];
  expect(parameterSchema({ oneOf, $defs })).toEqual({
    type: 'object',
    properties: { kind: { anyOf: [{ const: 'cat' }, { const: 'dog' }] }, name: text },
    $defs,
  });
});

test('a schema that refers to itself ends', () => {
  expect(parameterSchema({ $ref: '#', anyOf: [{ $ref: '#/anyOf/0' }] })).toEqual({
    type: 'object',
    properties: {},
  });
});

test.each([
  [{ type: 'any', description: 'x' }, { description: 'x' }],
  [{ type: '' }, {}],
  [{ type: 'string', required: true }, text],
  [
    { type: 'number', minimum: 0, exclusiveMinimum: true },
    { type: 'number', minimum: 0 },
  ],
  [{ type: 'array' }, { type: 'array', items: {} }],
  [
    { type: 'array', items: [text] },
    { type: 'array', prefixItems: [text], items: {} },
  ],
  [
    { type: 'array', items: { type: 'any' } },
    { type: 'array', items: {} },
  ],
])('a property is declared by the keywords that providers accept: %j', (given, sent) => {
  const declared = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' };
  expect(parameterSchema({ ...declared, properties: { a: given } })).toEqual({
    type: 'object',
    properties: { a: sent },
  });
});
