import type * as z from 'zod';
import { ProviderError } from '../../completion/provider-error.js';

/** The request asks for what Gemini has no form for, or is no chat completion. */
export const badRequest = () => new ProviderError('gemini', 'bad_request');

/** @throws ProviderError `bad_request`; without zod's own error, which can quote the prompt. */
export function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const read = schema.safeParse(value);
  if (!read.success) throw badRequest();
  return read.data;
}
