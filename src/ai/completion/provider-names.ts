export const PROVIDER_BASE_URLS = {
  openrouter: 'https://openrouter.ai/api/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta',
  groq: 'https://api.groq.com/openai/v1',
  anthropic: 'https://api.anthropic.com/v1',
  openai: 'https://api.openai.com/v1',
  minimax: 'https://api.minimax.io/v1',
} as const;

export type ProviderName = keyof typeof PROVIDER_BASE_URLS;

// The keys are those of the literal above.
export const PROVIDER_NAMES = Object.keys(PROVIDER_BASE_URLS) as [ProviderName, ...ProviderName[]];

export function isProviderName(name: string): name is ProviderName {
  return Object.hasOwn(PROVIDER_BASE_URLS, name);
}

export interface ProviderConfig {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
}

/** The providers with a configured key or address. */
export type Providers = Partial<Readonly<Record<ProviderName, ProviderConfig>>>;

/** Adds providers at their usual addresses, without a key. */
export const withUsual = (providers: Providers, further: readonly ProviderName[]): Providers => ({
  ...Object.fromEntries(
    further.map((name) => [name, { baseUrl: PROVIDER_BASE_URLS[name], apiKey: undefined }]),
  ),
  ...providers,
});
