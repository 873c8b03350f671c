/** The scopes of API keys, in the order in which they are shown. */
export const KEY_SCOPES = ['agents', 'ai', 'files', 'gateway', 'money'] as const;

export type KeyScope = (typeof KEY_SCOPES)[number];

/** The scopes of a key that was created without any: all but `money`. */
export const DEFAULT_KEY_SCOPES: readonly KeyScope[] = KEY_SCOPES.filter(
  (scope) => scope !== 'money',
);
