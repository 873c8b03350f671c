import * as z from 'zod';
import { fitsEnvironmentFile } from '../../src/docker/containers/environment-file.js';
import { CREDENTIAL_NAME, isReservedName } from '../../src/agents/credentials/credential-names.js';

const MAX_VALUE_BYTES = 8 * 1024;

/** Key of a skill in the runtime's configuration, for both listeners. */
export const skillName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'skill must begin with a letter or digit, and have at most 64 letters, digits, ".", "_" and "-"',
  )
  .describe('Key of the skill in the configuration');

/** Changes to a skill, to be spread into a body's schema. */
export const skillSettings = {
  enabled: z.boolean().optional(),
  config: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("Replaces the skill's own settings"),
};

/** Reports whether a body changes the skill; for `refine`. */
export const changesSkill = (body: { readonly enabled?: unknown; readonly config?: unknown }) =>
  body.enabled !== undefined || body.config !== undefined;

export const NO_SKILL_CHANGE = 'enabled or config is required';

/** Name of an environment variable for an agent's tools, for both listeners. */
export const credentialName = z
  .string()
  .regex(
    CREDENTIAL_NAME,
    'name must begin with a capital letter, and have at most 64 capital letters, digits and "_"',
  )
  .refine((name) => !isReservedName(name), 'name is reserved for the agent runtime')
  .describe('Name of the environment variable');

export const credentialValue = z
  .string()
  .min(1)
  .refine((value) => Buffer.byteLength(value) <= MAX_VALUE_BYTES, 'value must be at most 8 KiB')
  .refine(
    fitsEnvironmentFile,
    'value must leave one of the quotes \', " and ` unused, and have no NUL',
  )
  .nullable()
  .describe('null removes the credential');
