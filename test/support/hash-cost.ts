/** Work factors that replace the product's in most tests (`vitest.config.ts`): a hash takes 8 ms. */
export const PASSWORD_COST = { N: 2 ** 10, r: 8, p: 3 } as const;
/** Bcrypt cost that replaces the product's in most tests: a hash takes 2 ms instead of 70. */
export const API_KEY_COST = 4;
