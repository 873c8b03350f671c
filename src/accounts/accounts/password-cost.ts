/**
 * Work factors of new hashes: the 32 MiB option among those that OWASP considers equivalent, some 240 ms
 * each. The three lanes are filled sequentially in the same memory. Old hashes keep their own factors.
 */
export const PASSWORD_COST = { N: 2 ** 15, r: 8, p: 3 } as const;
