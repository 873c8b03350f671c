import type * as z from 'zod';
import { ProviderError } from '../../completion/provider-error.js';

export const badRequest = () => new ProviderError('gemini', 'bad_request');

/**
 * Parses a value. @throws ProviderError `bad_request`, without zod's own error, which can quote the prompt.
 */
export function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const read = schema.safeParse(value);
  if (!read.success) throw badRequest();
  return read.data;
}
