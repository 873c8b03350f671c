import * as z from 'zod';
import { isObject } from '../../src/lib/json.js';
import { withExamples } from './answer-examples.js';

export type Json = Readonly<Record<string, unknown>>;

/**
 * JSON Schemas of values for which the program's own schema is less precise, such as whole numbers in a
 * query.
 */
export const sentAs = z.registry<Json>();

const PLACE = '#/components/schemas/';

/** Converts schemas for one document. A schema with an id (`.meta({ id })`) becomes a component of this name. */
export class JsonSchemas {
  readonly #components = new Map<string, unknown>();

  /** The components that the converted schemas refer to, by name. */
  get components(): Json {
    return Object.fromEntries([...this.#components].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Converts a schema by its input types: bodies as sent, answers before defaults. */
  of(schema: z.ZodType): Json {
    return this.#place(pointed(jsonSchemaOf(schema)));
  }

  /** Converts the schema of an answer, whose texts get examples. */
  ofAnswer(schema: z.ZodType): Json {
    const found = pointed(jsonSchemaOf(schema));
    return this.#place(withExamples(found, (name, component) => this.#add(name, component)));
  }

  #place({ $defs = {}, ...rest }: Json): Json {
    for (const [name, found] of Object.entries(isObject($defs) ? $defs : {}))
      this.#add(name, found);
    return rest;
  }

  #add(name: string, found: unknown): void {
    const known = this.#components.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(found)) {
      throw new TypeError(`two schemas of this document have the id ${name}`);
    }
    this.#components.set(name, found);
  }
}

/** Returns the schema of an object's fields by name, and which of them are required. */
export function propertiesOf({ properties, required }: Json) {
  return {
    properties: isObject(properties) ? properties : {},
    required: new Set(Array.isArray(required) ? required : []),
  };
}

function jsonSchemaOf(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema, zodSchema }) {
      // The bounds of all safe integers carry no information.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      // The pattern of a single time has 300 characters.
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      const sent = sentAs.get(zodSchema);
      if (sent === undefined) return;
      delete jsonSchema.pattern;
      Object.assign(jsonSchema, sent);
    },
  });
  return rest;
}

/** Points the references of a schema at the components of a document, and shortens texts or null. */
function pointed(node: Json): Json {
  return JSON.parse(JSON.stringify(node), (name, value: unknown) =>
    name === '$ref' && typeof value === 'string'
      ? value.replace('#/$defs/', PLACE)
      : isObject(value)
        ? shortened(value)
        : value,
  ) as Json;
}

/** Returns a text with a format, or null, as one type. */
function shortened({ anyOf, ...rest }: Json): Json {
  const [text, nothing, ...more] = Array.isArray(anyOf) ? (anyOf as unknown[]) : [];
  const isTextOrNull =
    more.length === 0 &&
    isObject(text) &&
    isObject(nothing) &&
    text.type === 'string' &&
    text.format !== undefined &&
    nothing.type === 'null';
  if (!isTextOrNull) return anyOf === undefined ? rest : { anyOf, ...rest };
  return { ...text, ...rest, type: ['string', 'null'] };
}
