import { isObject, type JsonObject } from '../../../lib/json.js';
import { changedSchema } from '../shared/json-schema.js';
import { referred } from '../shared/tool-schema.js';

/**
 * Maximum number of names in a reference that is followed: deeper schemas would be copied once for each
 * outer one.
 */
const MAX_NAMES = 8;

/**
 * Returns a schema with the references that Gemini accepts: to "$defs", with no more beside them than
 * a description and a default. The targets of others are added to "$defs".
 */
export function geminiSchema(schema: JsonObject): JsonObject {
  const added = new Map<string, unknown>();
  const withReference = (given: JsonObject): JsonObject => {
    const { $ref: ref, ...others } = given;
    if (typeof ref !== 'string') return given;
    if (ref === '#') return { $ref: ref, ...allowedBeside(others) };
    const names = ref.split('/').slice(1);
    const target = names.length > MAX_NAMES ? undefined : referred(ref, schema);
    if (!isObject(target)) return others;
    if (names[0] === '$defs' && names.length === 2) return { $ref: ref, ...allowedBeside(others) };
    const name = names.join('_');
    if (!added.has(name)) added.set(name, target);
    return { $ref: `#/$defs/${name}`, ...allowedBeside(others) };
  };
  const changed = changedSchema(schema, withReference);
  if (!isObject(changed)) return schema;
  // A definition may refer to more, which this loop then visits too.
  for (const [name, target] of added) added.set(name, changedSchema(target, withReference));
  if (added.size === 0) return changed;
  const own = isObject(changed.$defs) ? changed.$defs : {};
  return { ...changed, $defs: { ...Object.fromEntries(added), ...own } };
}

function allowedBeside(others: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(others).filter(([word]) => word === 'description' || word === 'default'),
  );
}
