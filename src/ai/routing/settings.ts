import { address } from '../../platform/environment/address.js';
import { NO_PRIVATE_HOSTS } from '../../platform/environment/private-hosts.js';
import { area, variable, type Mode, type SettingsOf } from '../../platform/environment/area.js';
import { problemOfFile } from '../../platform/environment/settings-file.js';
import { choice, count, text, textAs, textMatching } from '../../platform/environment/types.js';
import {
  PROVIDER_BASE_URLS,
  PROVIDER_NAMES,
  type ProviderConfig,
  type ProviderName,
} from '../completion/provider-names.js';
import { loadCatalogue, SHIPPED_FILE } from '../models/catalogue-file.js';

const MODEL_TIMEOUT_MS = 30_000;
/** A small machine reads the prompt of an agent for a minute before its answer begins. */
const LOCAL_MODEL_TIMEOUT_MS = 120_000;

const onlyNever = textAs('never in production', (value) => (value === 'never' ? value : undefined));

export const aiSettings = area(
  'AI',
  (mode) => ({
    provider: variable(
      'AI_PROVIDER',
      choice(...PROVIDER_NAMES).prefault('openrouter'),
      'default AI provider, for calls whose provider is not determined otherwise',
    ),
    modelTimeoutMs: variable(
      'AI_MODEL_TIMEOUT_MS',
      count({ most: 600_000 }).optional(),
      'time limit of each attempt at a model, in milliseconds',
      {
        whenUnset: `\`${MODEL_TIMEOUT_MS}\`; for a provider on this machine \`${LOCAL_MODEL_TIMEOUT_MS}\``,
      },
    ),
    modelsFile: variable(
      'AI_MODELS_FILE',
      text.optional(),
      'file with the catalogue of models, in the format of the shipped file',
      { whenUnset: `the shipped \`${SHIPPED_FILE}\`` },
    ),
    trustHeaders: variable(
      'AI_TRUST_HEADERS',
      mode.production
        ? onlyNever.prefault('never')
        : choice('loopback', 'never').prefault('loopback'),
      '`loopback`: requests from this machine may use the AI API without a key, as the user named in their headers',
    ),
    providers: Object.fromEntries(
      PROVIDER_NAMES.map((name) => [name, providerVariables(name, mode)]),
    ),
  }),
  (
    { providers: values, modelsFile, modelTimeoutMs, ...rest },
    { privateHosts = NO_PRIVATE_HOSTS },
  ) => {
    const providers: Partial<Record<ProviderName, ProviderConfig>> = {};
    for (const name of PROVIDER_NAMES) {
      const { apiKey, baseUrl } = values[name] ?? {};
      // A local model server often needs no key, so an address without a key also configures a provider.
      if (apiKey === undefined && baseUrl === undefined) continue;
      providers[name] = { apiKey, baseUrl: baseUrl ?? PROVIDER_BASE_URLS[name] };
    }
    return {
      ...rest,
      modelTimeoutMs: modelTimeoutMs ?? MODEL_TIMEOUT_MS,
      localModelTimeoutMs: modelTimeoutMs ?? LOCAL_MODEL_TIMEOUT_MS,
      providers,
      privateHosts,
      catalogue: loadCatalogue(modelsFile),
    };
  },
  ({ modelsFile }) =>
    problemOfFile(
      () => loadCatalogue(modelsFile),
      modelsFile === undefined ? SHIPPED_FILE : 'the file that AI_MODELS_FILE names',
    ),
);

function providerVariables(name: ProviderName, mode: Mode) {
  return {
    // A key that is no valid header value would be quoted in the error of the HTTP client.
    apiKey: variable(
      `${name.toUpperCase()}_API_KEY`,
      textMatching(/^[\x21-\x7e]+$/, 'one line of visible ASCII characters').optional(),
      'API key of the platform at this provider',
      { secret: true },
    ),
    baseUrl: variable(
      `${name.toUpperCase()}_BASE_URL`,
      address(mode, 'http', 'https').optional(),
      'address of the API of the provider; for a server that needs no key, this setting alone is sufficient',
      { whenUnset: `\`${PROVIDER_BASE_URLS[name]}\`` },
    ),
  };
}

export type AiSettings = SettingsOf<typeof aiSettings>;
