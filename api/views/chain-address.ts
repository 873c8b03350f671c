import type { Hex } from 'viem';
import * as z from 'zod';
import { fieldMessage } from '../../src/lib/field-name.js';
import {
  ADDRESS_FORM,
  lowerCaseOf,
  parseAddress,
  shownAddress,
} from '../../src/money/chain/address.js';

const form = z.string().regex(ADDRESS_FORM, fieldMessage('must be 0x and 40 hex digits'));

/** Handlers get addresses in lower case. */
const inLowerCase = (text: z.ZodType<string, string>) =>
  z.codec(text, z.custom<Hex>(), { decode: lowerCaseOf, encode: (address) => address });

/** An address that receives or is stored, in a single letter case or with its checksum. */
export const chainAddress = inLowerCase(
  form.refine(
    (text) => parseAddress(text) !== undefined,
    fieldMessage('has a wrong checksum (EIP-55), so it is probably mistyped: copy it again'),
  ),
);

/** An address to look up, in any letter case. */
export const addressToFind = inLowerCase(form);

/** An address in an answer, with its checksum. */
export const answeredAddress = form
  .refine((text) => text === shownAddress(text))
  .meta({ id: 'Address', examples: ['0x20C0000000000000000000000000000000000000'] });
