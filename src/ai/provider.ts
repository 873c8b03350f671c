import type { AgentModel } from '../agents/models.js';
import type { Config } from '../config.js';
import type { ProviderConfig, ProviderName } from './provider-names.js';
import { UnavailableError } from '../errors.js';

/** The provider that serves agents' calls, and how to reach it. */
export interface Provider extends ProviderConfig {
  readonly name: ProviderName;
}

/**
 * The one configured provider: `AI_PROVIDER` if it has a key or an address, else the first that has.
 *
 * @throws UnavailableError that says what to set.
 */
export function configuredProvider(config: Pick<Config, 'aiProvider' | 'providers'>): Provider {
  const { aiProvider, providers } = config;
  const preferred = providers[aiProvider];
  if (preferred) return { name: aiProvider, ...preferred };
  // Object.entries forgets that the keys of this object are the names.
  const [first] = Object.entries(providers) as [ProviderName, ProviderConfig][];
  if (first) return { name: first[0], ...first[1] };
  const prefix = aiProvider.toUpperCase();
  throw new UnavailableError(
    `No AI provider is configured: set ${prefix}_API_KEY, or ${prefix}_BASE_URL for any ` +
      'OpenAI-compatible address, and restart',
  );
}

/** How openrouter names the models that agents are offered. */
const OPENROUTER_MODELS: Readonly<Record<Exclude<AgentModel, 'custom'>, string>> = {
  'claude-opus-4-6': 'anthropic/claude-opus-4.6',
  'gpt-4': 'openai/gpt-4',
};

/** What the provider calls the model of an agent. */
export function providerModel(
  provider: ProviderName,
  agent: { readonly model: string; readonly config: Readonly<Record<string, unknown>> },
): string {
  if (typeof agent.config.model === 'string') return agent.config.model;
  if (provider !== 'openrouter') return agent.model;
  const names: Readonly<Record<string, string>> = OPENROUTER_MODELS;
  return names[agent.model] ?? agent.model;
}
