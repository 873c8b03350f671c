import * as z from 'zod';
import { isVisible, NOT_VISIBLE } from './visible-text.js';

/** Returns the schema of a name without surrounding blanks and invisible characters. @param most characters */
export const visibleName = (most: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(most)
    .refine(isVisible, { error: `name ${NOT_VISIBLE}` });
