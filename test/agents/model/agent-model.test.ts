import { describe, expect, test } from 'vitest';
import type { Plan } from '../../../src/types/plans.js';
import {
  shownModel,
  shownModels,
  requestedModelOf as requestedOf,
  type AgentModelChoice,
} from '../../../src/agents/model/agent-model.js';
import type { ProviderName } from '../../../src/ai/completion/provider-names.js';
import { shippedModels } from '../../support/models.js';
import { Router } from '../../../src/ai/routing/route.js';

function router(...names: ProviderName[]): Router {
  const providers = Object.fromEntries(
    names.map((name) => [name, { baseUrl: 'http://x.test', apiKey: 'k' }]),
  );
  return new Router(shippedModels(providers), providers, 'openrouter');
}

const requestedModelOf = (agent: AgentModelChoice, plan: Plan) =>
  requestedOf(shippedModels().current, agent, plan);

const DEFAULT = { model: 'claude-opus-4-6', aiProvider: 'anthropic' };
const custom = (ownModel: string | null, aiProvider = 'openai') => ({
  model: 'custom',
  aiProvider,
  ownModel,
});

const routeOf = (agent: AgentModelChoice, plan: Plan, ...names: ProviderName[]) =>
  router(...names)
    .forAgent(requestedModelOf(agent, plan), plan)
    .map(({ provider, model }) => `${provider}/${model}`);

const RESTRICTED = expect.objectContaining({ status: 403, code: 'MODEL_RESTRICTED' });

describe('the default model', () => {
  test.each<[Plan, string]>([
    ['network', 'claude-opus-4-6'],
    ['collective', 'claude-sonnet-5-5'],
    ['solo', 'claude-haiku-5-5'],
  ])('the default model on the plan %s is %s at Anthropic, and is shown as such', (plan, model) => {
    expect(routeOf(DEFAULT, plan, 'openrouter', 'anthropic')[0]).toBe(`anthropic/${model}`);
    expect(shownModel(router('anthropic'), DEFAULT, plan)).toBe(model);
  });

  test('the default model is the best one of the plan that a configured provider serves', () => {
    expect(shownModel(router('anthropic', 'gemini', 'openai'), DEFAULT, 'label')).toBe(
      'gemini-2.5-flash',
    );
    expect(shownModel(router('openai'), DEFAULT, 'label')).toBe('gpt-6-luna');
    expect(shownModel(router('groq'), DEFAULT, 'solo')).toBe('gpt-oss-120b');
  });

  test("the default model falls back to the plan's other models on a plan with a quota", () => {
    expect(routeOf(DEFAULT, 'label', 'openrouter')).toEqual([
      'openrouter/google/gemini-2.5-flash',
      'openrouter/openai/gpt-6-luna',
      'openrouter/openai/gpt-oss-120b',
    ]);
  });

  test('the default model is a 404 if no provider serves a model of the plan', () => {
    expect(() => routeOf(DEFAULT, 'label', 'anthropic')).toThrow(
      expect.objectContaining({ status: 404 }),
    );
    expect(shownModel(router('anthropic'), DEFAULT, 'label')).toBe('claude-opus-4-6');
    expect(shownModel(router(), DEFAULT, 'solo')).toBe('claude-opus-4-6');
    expect(shownModel(router('anthropic'), DEFAULT, undefined)).toBe('claude-opus-4-6');
  });
});

describe('an explicit model', { tags: 'attack' }, () => {
  test('an explicit model is allowed only on plans that include it', () => {
    const gpt4 = { model: 'gpt-4', aiProvider: 'openai', ownModel: 'gpt-6-luna' };
    expect(routeOf(gpt4, 'network', 'openai')[0]).toBe('openai/gpt-4');
    for (const plan of ['label', 'solo', 'collective'] as const) {
      expect(() => requestedModelOf(gpt4, plan)).toThrow(RESTRICTED);
    }
    expect(shownModel(router('openai'), gpt4, 'solo')).toBe('gpt-4');
  });

  test.each(['gpt-6.1-sol', 'openai/gpt-6.1-sol', 'openrouter/openai/gpt-6.1-sol'])(
    "a custom model's name is matched with the catalogue: %s",
    (name) => {
      expect(routeOf(custom(name), 'collective', 'openrouter', 'openai')).toEqual([
        'openai/gpt-6.1-sol',
        'openrouter/openai/gpt-6.1-sol',
      ]);
      expect(() => requestedModelOf(custom(name), 'solo')).toThrow(RESTRICTED);
      expect(shownModel(router('openai'), custom(name), 'collective')).toBe('gpt-6.1-sol');
    },
  );

  test('a custom model without a known price is refused on a plan with a quota', () => {
    const mine = custom('my-own-model');
    for (const plan of ['label', 'solo', 'collective'] as const) {
      expect(() => requestedModelOf(mine, plan)).toThrow(RESTRICTED);
    }
    expect(routeOf(mine, 'network', 'openai', 'openrouter')).toEqual(['openai/my-own-model']);
    expect(shownModel(router('openai'), mine, 'network')).toBe('my-own-model');
  });

  test.each([
    'openai/gpt-6-luna:online',
    'dear/model:online',
    '@preset/mine',
    'dear/model@preset/mine',
    'a:online/b',
    'no-maker',
    'openrouter/auto',
  ])('refuses an OpenRouter name that requests more than a model: %s', (name) => {
    expect(() => requestedModelOf(custom(name, 'openrouter'), 'network')).toThrow(
      expect.objectContaining({ status: 400 }),
    );
    // Also when OpenRouter is only the fallback for an unavailable provider.
    const elsewhere = custom(name, 'groq');
    expect(() => routeOf(elsewhere, 'network', 'openrouter')).toThrow(
      expect.objectContaining({ status: 400 }),
    );
  });

  test("an OpenRouter model's name may select among its providers", () => {
    expect(routeOf(custom('dear/model:nitro', 'openrouter'), 'network', 'openrouter')).toEqual([
      'openrouter/dear/model:nitro',
    ]);
  });

  test.each([null, ''])('a custom model needs a name: %j', (name) => {
    expect(() => requestedModelOf(custom(name), 'network')).toThrow('config.model names no model');
  });
});

test('each agent of a list shows its own model', () => {
  const modelOf = shownModels(router('openai'), 'solo');
  const made = [DEFAULT, { ...DEFAULT, ownModel: 'gpt-4' }, custom('gpt-6-luna'), custom('gpt-4')];
  expect([...made, ...made].map(modelOf)).toEqual([
    ...['gpt-6-luna', 'gpt-6-luna', 'gpt-6-luna', 'gpt-4'],
    ...['gpt-6-luna', 'gpt-6-luna', 'gpt-6-luna', 'gpt-4'],
  ]);
});
