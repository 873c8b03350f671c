import { pino } from 'pino';
import { agentModelFault } from '../agents/model/agent-model-sizes.js';
import {
  checkProviders,
  type AiReport,
  type ProviderReport,
} from '../ai/routing/provider-report.js';
import { aiSettings } from '../ai/routing/settings.js';
import { checkOf, failure, ok, warning, type Check, type Finding } from './check.js';

/** Queries each configured provider once with its key, and checks that a model is available. */
export const providersCheck: Check = checkOf('providers', { ai: aiSettings }, async ({ ai }) => {
  const report = await checkProviders(ai, pino({ level: 'silent' }));
  return [...report.providers.map(findingOf), ...modelFindings(report)];
});

function findingOf({ models, provider, state }: ProviderReport): Finding {
  const variable = provider.toUpperCase();
  switch (state) {
    case 'key_refused':
      return failure(`${provider} refuses its key: set a valid ${variable}_API_KEY.`);
    case 'silent':
      return warning(
        `${provider} does not answer: check its server and ${variable}_BASE_URL, or remove its settings.`,
      );
    case 'answers':
      return ok(`${provider} answers, with ${models} ${models === 1 ? 'model' : 'models'}.`);
  }
}

function modelFindings({ defaultModel, setup }: AiReport): Finding[] {
  if (setup !== undefined) return [failure(`No AI model is available: ${setup}.`)];
  const fault = defaultModel && agentModelFault(defaultModel);
  if (fault !== undefined) return [warning(fault)];
  return [ok(`The default model is ${defaultModel?.id ?? 'none'}.`)];
}
