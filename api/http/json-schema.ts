import * as z from 'zod';

export type Json = Readonly<Record<string, unknown>>;

/** JSON Schemas of values whose schema in the program says less, such as whole numbers in a query. */
export const sentAs = z.registry<Json>();

/** Converts a schema to JSON Schema by its input types: bodies as sent, answers before defaults. */
export function jsonSchemaOf(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema, zodSchema }) {
      // Bounds of every safe integer say nothing.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      const sent = sentAs.get(zodSchema);
      if (sent === undefined) return;
      delete jsonSchema.pattern;
      Object.assign(jsonSchema, sent);
    },
  });
  return rest;
}
