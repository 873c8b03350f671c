import * as z from 'zod';

/** A model in a provider's list; sizes in tokens, where the list has them. */
export interface ListedModel {
  readonly name: string;
  readonly contextWindow?: number | undefined;
  readonly maxOutput?: number | undefined;
  /** False if the list states that the model cannot use tools. */
  readonly takesTools?: boolean | undefined;
  readonly owner?: string | undefined;
}

/** Maximum number of models of one list, and the length of a name that fits a usage row with its provider. */
const MAX_MODELS = 1_000;
const MAX_NAME_LENGTH = 89;

const MAX_TOKENS = 100_000_000;

/** A name that can be an id; others are left out. */
export const modelName = z
  .string()
  .max(MAX_NAME_LENGTH)
  .regex(/^[\x21-\x7e]+$/);

/** A number of tokens; any other value counts as missing. */
export const tokenCount = z.number().int().min(1).max(MAX_TOKENS).optional().catch(undefined);

/** Reads the entries of a list with a schema, and leaves out those that do not fit. */
export const readEntries = (
  entries: readonly unknown[],
  entry: z.ZodType<ListedModel>,
): ListedModel[] =>
  entries.slice(0, MAX_MODELS).flatMap((each) => entry.safeParse(each).data ?? []);
