import { isObject, type JsonObject } from '../../../lib/json.js';

/** Keywords whose value is an object of schemas. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);

/** Keywords whose value is a schema, or a list of schemas. */
const NESTED: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalProperties',
  'anyOf',
  'allOf',
  'oneOf',
  'not',
]);

/** Changes a schema and all schemas in it, the inner ones first. */
export function changedSchema(
  schema: unknown,
  change: (schema: JsonObject) => JsonObject,
): unknown {
  if (Array.isArray(schema)) return schema.map((each) => changedSchema(each, change));
  if (!isObject(schema)) return schema;
  const changed = (value: unknown) => changedSchema(value, change);
  const entries = Object.entries(schema).map(([word, value]): [string, unknown] => {
    if (NESTED.has(word)) return [word, changed(value)];
    if (!NAMED.has(word) || !isObject(value)) return [word, value];
    return [
      word,
      Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changed(each)])),
    ];
  });
  return change(Object.fromEntries(entries));
}
