import { isObject } from '../../src/lib/json.js';

type Schema = Readonly<Record<string, unknown>>;

/** Formats of which tools make an example themselves. */
const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-11-27',
  'date-time': '2026-11-27T12:00:00.000Z',
  email: 'ada@example.com',
  uri: 'https://example.com',
  uuid: '0b7c4f1e-52a3-4d90-9e1f-6a2b3c4d5e6f',
};

/**
 * Composes an example of a JSON schema without references from the examples of its parts, as tools for OpenAPI do.
 * `lacking` has the paths of texts without an example.
 */
export function exampleOf(schema: Schema): {
  readonly example: unknown;
  readonly lacking: readonly string[];
} {
  const lacking: string[] = [];
  return { example: compose(schema, '', lacking), lacking };
}

function compose(schema: Schema, path: string, lacking: string[]): unknown {
  const [given] = [schema.examples, schema.enum].find(Array.isArray) ?? [
    schema.const ?? schema.default,
  ];
  if (given !== undefined) return given;
  const [either] = [schema.anyOf, schema.oneOf].find(Array.isArray) ?? [];
  if (isObject(either)) return compose(either, path, lacking);
  if (Array.isArray(schema.allOf)) {
    const parts = schema.allOf.filter(isObject).map((each) => compose(each, path, lacking));
    return Object.assign({}, ...parts);
  }
  const [type] = [schema.type].flat();
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(isObject(schema.properties) ? schema.properties : {}).map(([name, each]) => [
          name,
          compose(isObject(each) ? each : {}, `${path}.${name}`, lacking),
        ]),
      );
    case 'array':
      if (Array.isArray(schema.prefixItems)) {
        return schema.prefixItems.filter(isObject).map((each) => compose(each, path, lacking));
      }
      return isObject(schema.items) ? [compose(schema.items, `${path}[]`, lacking)] : [];
    case 'string':
      return FORMATS[String(schema.format)] ?? (lacking.push(path), '');
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 1;
    default:
      return type === 'null' ? null : {};
  }
}
