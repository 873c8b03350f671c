import * as z from 'zod';
import { ofField } from '../../src/field-name.js';

/** An address of the chain as a caller writes it; handlers have it in lower case. */
export const chainAddress = z
  .string()
  .regex(/^0x[\da-fA-F]{40}$/, ofField('must be 0x and 40 hex digits'))
  // Its form was just looked at.
  .transform((address) => address.toLowerCase() as `0x${string}`);
