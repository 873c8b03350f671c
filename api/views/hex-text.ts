import type { Hex } from 'viem';
import * as z from 'zod';
import { ofField } from '../../src/lib/field-name.js';

/**
 * Bytes as a caller writes them; handlers have them in lower case.
 *
 * @param form from `0x` to the end.
 * @param error is told after the name of the field.
 */
export const hexText = (form: RegExp, error: string) =>
  z
    .string()
    .regex(form, ofField(error))
    // Its form was just looked at.
    .transform((text) => text.toLowerCase() as Hex);
