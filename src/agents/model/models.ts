import { PROVIDER_NAMES, type ProviderName } from '../../ai/completion/provider-names.js';
import { BadRequestError } from '../../lib/errors.js';

/** The models that provisioning offers (spec 4.7). `custom` selects the model in `config.model`. */
export const AGENT_MODELS = ['claude-opus-4-6', 'gpt-4', 'custom'] as const;

export type AgentModel = (typeof AGENT_MODELS)[number];

export const DEFAULT_MODEL: AgentModel = 'claude-opus-4-6';
export const CUSTOM_MODEL: AgentModel = 'custom';

/**
 * Returns an agent's model and provider: the default model comes from its maker, every other model from the
 * requested provider or else the configured one. @throws BadRequestError for an unknown one.
 */
export function requestedModel(
  requested: { readonly model?: string | undefined; readonly aiProvider?: string | undefined },
  configuredProvider: ProviderName,
): { model: AgentModel; aiProvider: ProviderName } {
  const model = AGENT_MODELS.find((known) => known === (requested.model ?? DEFAULT_MODEL));
  if (!model) throw new BadRequestError(`model must be one of ${AGENT_MODELS.join(', ')}`);
  const fallback = model === DEFAULT_MODEL ? 'anthropic' : configuredProvider;
  const name = requested.aiProvider ?? fallback;
  const aiProvider = PROVIDER_NAMES.find((known) => known === name);
  if (!aiProvider) {
    throw new BadRequestError(`aiProvider must be one of ${PROVIDER_NAMES.join(', ')}`);
  }
  return { model, aiProvider };
}
