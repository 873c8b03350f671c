/** How people sign in: what a session says of how it came about. */
export const SIGN_IN_METHODS = ['password', 'google', 'github', 'wallet'] as const;

export type SignInMethod = (typeof SIGN_IN_METHODS)[number];

/** What an account can be linked to: what is in the hands of others. */
export const IDENTITY_KINDS = ['google', 'github', 'wallet', 'farcaster'] as const;

export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Those at whom people sign in, by the names that sessions have for them. */
export type ProviderKind = Extract<SignInMethod, 'google' | 'github'>;

/** The issuer of wallet identities: EIP-155, for the addresses of every EVM chain. */
export const WALLET_ISSUER = 'eip155';
