import { BadRequestError } from '../../src/lib/errors.js';

const MAX_DEPTH = 100;

/** Rejects text that PostgreSQL cannot store, and nesting that overflows the stack of later code. */
export function refuseUnstorable(input: unknown, part: string): void {
  walk(input, part, refuseText);
}

/** Rejects nesting that overflows the stack of later code. */
export function refuseDeep(input: unknown, part: string): void {
  walk(input, part, () => undefined);
}

function walk(input: unknown, part: string, checkText: (text: string, part: string) => void): void {
  let level: unknown[] = [input];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new BadRequestError(`${part} is nested too deeply`);
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === 'string') checkText(value, part);
      else if (Array.isArray(value)) for (const element of value) next.push(element);
      else if (typeof value === 'object' && value !== null) {
        for (const [key, element] of Object.entries(value)) {
          checkText(key, part);
          next.push(element);
        }
      }
    }
    level = next;
  }
}

function refuseText(text: string, part: string): void {
  // With the `u` flag, \p{Surrogate} only matches lone surrogates.
  if (text.includes('\0') || /\p{Surrogate}/u.test(text)) {
    throw new BadRequestError(`${part} contains a character that cannot be stored`);
  }
}
