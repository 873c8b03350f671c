import type { Hex } from 'viem';
import * as z from 'zod';
import { ofField } from '../../src/field-name.js';

const hex = (form: RegExp, error: string) =>
  z
    .string()
    .regex(form, ofField(error))
    // Its form was just looked at.
    .transform((text) => text.toLowerCase() as Hex);

/** Of a key, or what ERC-1271 and ERC-6492 have. */
export const walletSignature = hex(
  /^0x(?:[\da-fA-F]{2}){1,4096}$/,
  'must be 0x and the signature in hex',
);
