/** A user's own keys of AI providers, sealed, by the provider's name. */
export type SealedOwnKeys = Readonly<Record<string, string>>;
