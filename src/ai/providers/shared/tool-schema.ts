import { isObject, type JsonObject } from '../../../lib/json.js';

/**
 * Returns the schema of a tool's parameters with the type "object", which every provider requires.
 * Alternatives at the top, which OpenAI and Anthropic refuse, become properties that may be absent.
 */
export function parameterSchema(given: JsonObject): JsonObject {
  const { type: _type, properties: _properties, anyOf, oneOf, allOf, ...others } = given;
  const variants = [anyOf, oneOf, allOf].flat().filter(isObject);
  if (given.type === 'object' && variants.length === 0) return given;
  return {
    ...others,
    type: 'object',
    properties: Object.assign({}, ...variants.map(propertiesOf), propertiesOf(given)),
  };
}

const propertiesOf = ({ properties }: JsonObject): JsonObject =>
  isObject(properties) ? properties : {};
