import { isObject, type JsonObject } from '../../../lib/json.js';
import { changedSchema } from '../shared/json-schema.js';

/** Keywords that Anthropic refuses in a schema that the model must follow. */
const REFUSED: ReadonlySet<string> = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
]);

/** Returns a schema without what Anthropic refuses, and with no further properties, as it demands. */
export const strictSchema = (schema: JsonObject): unknown =>
  changedSchema(schema, ({ oneOf, ...given }) => {
    const kept = Object.entries(given).filter(([word, value]) => isTaken(word, value));
    const isOfObjects = [given.type].flat().includes('object') || isObject(given.properties);
    return {
      ...Object.fromEntries(kept),
      ...(oneOf !== undefined && { anyOf: oneOf }),
      ...(isOfObjects && { additionalProperties: false }),
    };
  });

const isTaken = (word: string, value: unknown): boolean =>
  !REFUSED.has(word) && (word !== 'minItems' || value === 0 || value === 1);
