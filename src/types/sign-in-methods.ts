/** Ways to sign in; a session records the one that opened it. */
export const SIGN_IN_METHODS = ['password', 'google', 'github', 'wallet'] as const;

export type SignInMethod = (typeof SIGN_IN_METHODS)[number];

/** Kinds of external identities that an account can be linked to. */
export const IDENTITY_KINDS = ['google', 'github', 'wallet', 'farcaster'] as const;

export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Sign-in providers, by the names that sessions use. */
export type ProviderKind = Extract<SignInMethod, 'google' | 'github'>;

/** The issuer of wallet identities: EIP-155, for the addresses of every EVM chain. */
export const WALLET_ISSUER = 'eip155';
