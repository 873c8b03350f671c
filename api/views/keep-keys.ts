import * as z from 'zod';

/** The field of requests that set a password. */
export const keepKeys = z
  .boolean()
  .optional()
  .describe('If true, your API keys stay; otherwise all of them end');
