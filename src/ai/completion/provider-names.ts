/** The AI providers, with the address of their API. */
export const PROVIDER_BASE_URLS = {
  openrouter: 'https://openrouter.ai/api/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta',
  groq: 'https://api.groq.com/openai/v1',
  anthropic: 'https://api.anthropic.com/v1',
  openai: 'https://api.openai.com/v1',
  minimax: 'https://api.minimax.io/v1',
} as const;

export type ProviderName = keyof typeof PROVIDER_BASE_URLS;

// The keys of an object literal are those of its type.
export const PROVIDER_NAMES = Object.keys(PROVIDER_BASE_URLS) as [ProviderName, ...ProviderName[]];

export function isProviderName(name: string): name is ProviderName {
  return Object.hasOwn(PROVIDER_BASE_URLS, name);
}

/** Where a provider's API is, and the key to it. */
export interface ProviderConfig {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
}
