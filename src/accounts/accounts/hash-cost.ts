/**
 * Work factors of new hashes: the 32 MiB option among those that OWASP considers equivalent, some 240 ms
 * each. The three lanes are filled sequentially in the same memory. Old hashes keep their own factors.
 */
export const PASSWORD_COST = { N: 2 ** 15, r: 8, p: 3 } as const;

/** Bcrypt cost of new API keys, some 70 ms each: their 256 random bits need no more. */
export const API_KEY_COST = 10;
