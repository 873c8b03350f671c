import { isObject, type JsonObject } from '../../../lib/json.js';
import { changedSchema } from './json-schema.js';

/** Maximum number of references and alternatives that are followed, one within the other. */
const MAX_DEPTH = 5;

/**
 * Returns the schema of a tool's parameters with the type "object", which every provider requires.
 * Alternatives at the top, which OpenAI and Anthropic refuse, become properties that may be absent.
 */
export function parameterSchema(declared: JsonObject): JsonObject {
  const changed = changedSchema(declared, soundSchema);
  const given = isObject(changed) ? changed : {};
  const { $ref: _ref, type: _type, properties: _properties, ...rest } = given;
  const { anyOf, oneOf, allOf, ...others } = rest;
  const isPlain = [given.$ref, anyOf, oneOf, allOf].every((each) => each === undefined);
  if (given.type === 'object' && isPlain) return given;
  return { ...others, type: 'object', properties: propertiesOf(given, given, MAX_DEPTH) };
}

const TYPES: ReadonlySet<unknown> = new Set([
  'object',
  'array',
  'string',
  'number',
  'integer',
  'boolean',
  'null',
]);

const isType = (type: unknown): boolean =>
  Array.isArray(type) ? type.length > 0 && type.every((each) => TYPES.has(each)) : TYPES.has(type);

/** Keywords with the values that JSON Schema allows; providers refuse others, such as those of early drafts. */
const ALLOWED = new Map<string, (value: unknown) => boolean>([
  ['type', isType],
  ['required', (value) => Array.isArray(value)],
  ['properties', isObject],
  ['exclusiveMinimum', (value) => typeof value === 'number'],
  ['exclusiveMaximum', (value) => typeof value === 'number'],
  ['enum', (value) => Array.isArray(value) && value.length > 0],
  ['$schema', () => false],
]);

/** Returns a schema without keywords that are invalid, and with the items that OpenAI requires. */
function soundSchema({ items, ...others }: JsonObject): JsonObject {
  const kept = Object.fromEntries(
    Object.entries(others).filter(([word, value]) => ALLOWED.get(word)?.(value) !== false),
  );
  if (Array.isArray(items)) return { ...kept, prefixItems: items, items: {} };
  const isList = [kept.type].flat().includes('array');
  return { ...kept, ...(items === undefined ? isList && { items: {} } : { items }) };
}

/** Returns the properties of a schema and its alternatives; those of one name become alternatives. */
function propertiesOf(schema: unknown, root: JsonObject, depth: number): JsonObject {
  if (!isObject(schema) || depth === 0) return {};
  const { $ref: ref, properties, anyOf, oneOf, allOf } = schema;
  const variants = [referred(ref, root), anyOf, oneOf, allOf].flat();
  const own = isObject(properties) ? properties : {};
  const all = new Map<string, readonly unknown[]>();
  for (const variant of variants) {
    for (const [name, property] of Object.entries(propertiesOf(variant, root, depth - 1))) {
      all.set(name, withAlternative(all.get(name) ?? [], property));
    }
  }
  const merged = [...all].map(([name, [first, ...more]]): [string, unknown] => [
    name,
    more.length === 0 ? first : { anyOf: [first, ...more] },
  ]);
  return { ...Object.fromEntries(merged), ...own };
}

function withAlternative(known: readonly unknown[], property: unknown): readonly unknown[] {
  const json = JSON.stringify(property);
  return known.some((each) => JSON.stringify(each) === json) ? known : [...known, property];
}

/** Returns the part of the schema that a reference within it names. */
export function referred(ref: unknown, root: JsonObject): unknown {
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return undefined;
  return ref
    .slice(2)
    .split('/')
    .reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), root);
}
