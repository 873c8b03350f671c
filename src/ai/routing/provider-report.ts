import type { Logger } from 'pino';
import { ServiceError } from '../../lib/errors.js';
import { PROVIDER_NAMES, type ProviderName } from '../completion/provider-names.js';
import type { ListAnswer } from '../models/request-list.js';
import { ModelDiscovery } from '../models/discovery.js';
import type { ModelEntry } from '../models/model-set.js';
import { Models } from '../models/models.js';
import { Router } from './route.js';
import type { AiSettings } from './settings.js';

export interface ProviderReport {
  readonly provider: ProviderName;
  readonly state: ListAnswer['state'];
  /** Available models. */
  readonly models: number;
}

/** The state of all configured providers, each queried once with its key. */
export interface AiReport {
  readonly providers: readonly ProviderReport[];
  /** The model for calls that select no other. */
  readonly defaultModel: ModelEntry | undefined;
  /** A sentence that names the setting to set, if no model is available. */
  readonly setup: string | undefined;
}

interface Parts {
  readonly discovery: ModelDiscovery;
  readonly router: Router;
}

/** Queries all configured providers, for programs that answer no AI calls. */
export async function checkProviders(settings: AiSettings, log: Logger): Promise<AiReport> {
  const models = new Models(settings);
  const discovery = new ModelDiscovery({ ...settings, models, log });
  await discovery.refresh();
  return reportProviders({
    discovery,
    router: new Router(models, settings.providers, settings.provider),
  });
}

/** Reports on providers whose lists are cached; queries those at public addresses for the first time. */
export async function reportProviders({ discovery, router }: Parts): Promise<AiReport> {
  const states = await discovery.states();
  const available = router.models.current.entries.filter((entry) => entry.available);
  return {
    providers: PROVIDER_NAMES.flatMap((provider) => {
      const state = states.get(provider);
      const models = available.filter((entry) => entry.provider === provider).length;
      return state === undefined ? [] : [{ provider, state, models }];
    }),
    defaultModel: defaultModel(router),
    setup: router.missingModel,
  };
}

/** Reports whether a person should act: no model is available, or a key is refused. */
export const needsAction = ({ providers, setup }: AiReport): boolean =>
  setup !== undefined || providers.some(({ state }) => state === 'key_refused');

/** Describes a report in one line. */
export function describeReport({ defaultModel: model, providers, setup }: AiReport): string {
  const states = providers.map(describeProvider);
  const result =
    setup === undefined
      ? `the default model is ${model?.id ?? 'none'}`
      : `no model is available: ${setup}`;
  return `AI: ${[...states, result].join('; ')}.`;
}

function describeProvider({ models, provider, state }: ProviderReport): string {
  switch (state) {
    case 'key_refused':
      return `${provider} refuses its key (${provider.toUpperCase()}_API_KEY)`;
    case 'silent':
      return `${provider} does not answer`;
    case 'answers':
      return `${provider} answers, with ${models} ${models === 1 ? 'model' : 'models'}`;
  }
}

function defaultModel(router: Router): ModelEntry | undefined {
  try {
    return router.forTask('general', 'network')[0]?.entry;
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
