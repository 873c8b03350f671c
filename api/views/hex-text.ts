import type { Hex } from 'viem';
import * as z from 'zod';
import { fieldMessage } from '../../src/lib/field-name.js';

/** Hexadecimal bytes in lower case, matching `form` after `0x`; `error` follows the field's name. */
export const hexText = (form: RegExp, error: string) =>
  z
    .string()
    .regex(form, fieldMessage(error))
    // Safe cast: the pattern was checked above.
    .transform((text) => text.toLowerCase() as Hex);
