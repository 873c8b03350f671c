import type { Hex } from 'viem';
import * as z from 'zod';
import { fieldMessage } from '../../src/lib/field-name.js';

/**
 * Hexadecimal bytes; handlers get them in lower case.
 *
 * @param form pattern from `0x` to the end.
 * @param error the error text that follows the field's name.
 */
export const hexText = (form: RegExp, error: string) =>
  z
    .string()
    .regex(form, fieldMessage(error))
    // Safe cast: the pattern was checked above.
    .transform((text) => text.toLowerCase() as Hex);
