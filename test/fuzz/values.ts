import { isObject } from '../../src/lib/json.js';
import type { Random } from '../support/random.js';
import type { Schema } from './document.js';

/** Values that exist on the server, by the name of their field. */
export type Known = Readonly<Record<string, readonly unknown[]>>;

const TEXTS = ['a', 'Ada', '0', ' ', 'null', 'ünïcödé 🚀', 'a-b_c.d', '2026-01-01', '__proto__'];

/** Texts that programs often mishandle. */
const NASTY_TEXTS = [
  '',
  '\0',
  'a\0b',
  '\ud800',
  '\u202e\u2066',
  "' OR true --",
  '$1; DROP TABLE users',
  '../../../../etc/passwd',
  '%00%ff',
  '{{7*7}}${7*7}',
  '\r\nSet-Cookie: a=b',
  '9'.repeat(400),
  'x'.repeat(300),
  'é'.repeat(70_000),
  '-1',
  '1e309',
  '275760-09-13T00:00:00.001Z',
  '-271821-04-20T00:00:00.000Z',
];

const NASTY_VALUES = [
  null,
  true,
  [],
  {},
  0,
  -1,
  0.1,
  2 ** 31,
  2 ** 53,
  -(2 ** 63),
  1e300,
  [null],
  [[]],
  { a: null },
  JSON.parse('{"__proto__": {"isAdmin": true}, "constructor": {"prototype": {}}}') as unknown,
  { $ref: '#/', $gt: '' },
];

const NESTED = 2_000;

export function nastyText(random: Random): string {
  return random.pick(NASTY_TEXTS);
}

export function nastyValue(random: Random): unknown {
  if (random.isOneIn(3)) return nastyText(random);
  if (random.isOneIn(20)) return JSON.parse('['.repeat(NESTED) + ']'.repeat(NESTED)) as unknown;
  return random.pick(NASTY_VALUES);
}

/** Builds a value that probably fits the schema (not verified); often an existing one from `known`. */
export function valueOf(schema: Schema, random: Random, known: Known, name = ''): unknown {
  const there = known[name];
  if (there !== undefined && !random.isOneIn(10)) return random.pick(there);
  for (const choice of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(choice)) return valueOf(random.pick(choice) as Schema, random, known, name);
  }
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return random.pick(schema.enum);
  switch (schema.type) {
    case 'string':
      return textOf(schema, random);
    case 'integer':
      return Math.round(numberOf(schema, random));
    case 'number':
      return numberOf(schema, random);
    case 'boolean':
      return random.isOneIn(2);
    case 'null':
      return null;
    case 'array': {
      const items = isObject(schema.items) ? schema.items : {};
      const length = bounded(schema, 'minItems', 'maxItems', random.below(4));
      return Array.from({ length }, () => valueOf(items, random, known));
    }
    case 'object':
      return objectOf(schema, random, known);
    default:
      return random.isOneIn(2) ? { any: [1, 'thing'] } : nastyValue(random);
  }
}

function objectOf(schema: Schema, random: Random, known: Known): Record<string, unknown> {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const made: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    if (!required.includes(name) && random.isOneIn(2)) continue;
    made[name] = valueOf(isObject(property) ? property : {}, random, known, name);
  }
  const more = schema.additionalProperties;
  if (isObject(more) && random.isOneIn(2)) {
    made[random.pick(TEXTS)] = valueOf(more, random, known);
  }
  return made;
}

function textOf(schema: Schema, random: Random): string {
  if (schema.format === 'date-time') return new Date(random.below(2 ** 31) * 1_000).toISOString();
  if (random.isOneIn(4)) return 'x'.repeat(bounded(schema, 'minLength', 'maxLength', 1, random));
  const length = bounded(schema, 'minLength', 'maxLength', 1);
  return random.pick(TEXTS).padEnd(length, 'a');
}

function numberOf(schema: Schema, random: Random): number {
  const least = typeof schema.minimum === 'number' ? schema.minimum : -1_000;
  const most = typeof schema.maximum === 'number' ? schema.maximum : 1_000;
  return random.pick([least, most, least + random.next() * (most - least), Math.max(least, 1)]);
}

/** Returns a size within the schema's bounds; with `random`, one of the bounds. */
function bounded(schema: Schema, min: string, max: string, usual: number, random?: Random): number {
  const least = typeof schema[min] === 'number' ? schema[min] : 0;
  const most = typeof schema[max] === 'number' ? schema[max] : Math.max(least, 5_000);
  if (random) return random.pick([least, most]);
  return Math.min(Math.max(usual, least), most);
}

/** Copies the value with one invalid part. */
export function spoilt(value: unknown, random: Random): unknown {
  if (random.isOneIn(4)) return nastyValue(random);
  if (Array.isArray(value) && value.length > 0) {
    const at = random.below(value.length);
    return value.map((each, index) => (index === at ? spoilt(each, random) : (each as unknown)));
  }
  if (isObject(value)) {
    const names = Object.keys(value);
    const name = names.length > 0 && !random.isOneIn(5) ? random.pick(names) : nastyText(random);
    if (random.isOneIn(5)) {
      const { [name]: _left, ...rest } = value;
      return rest;
    }
    return { ...value, [name]: spoilt(value[name], random) };
  }
  return nastyValue(random);
}
