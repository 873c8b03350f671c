import { expect, test } from 'vitest';
import { AgentModelSizes, agentModelFault } from '../../../src/agents/model/agent-model-sizes.js';
import { Router } from '../../../src/ai/routing/route.js';
import { shippedModels } from '../../support/models.js';

const providers = { openai: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: undefined } };

/** Returns the sizes for an agent with the default model, of an owner with the plan `solo`. */
async function sizesAt(list: Parameters<ReturnType<typeof shippedModels>['learn']>[1] | undefined) {
  const models = shippedModels(providers);
  if (list) models.learn('openai', list);
  const sizes = new AgentModelSizes(new Router(models, providers, 'openai'), { adminEmails: [] });
  const owner = { email: 'ada@example.com', emailVerified: false, isAdmin: false, plan: 'solo' };
  // As much of the tenant and the agent as is read.
  const given = [
    { query: () => Promise.resolve([owner]) },
    { userId: 'ada', model: 'claude-opus-4-6', aiProvider: 'anthropic', config: {} },
  ] as unknown as Parameters<AgentModelSizes['of']>;
  return sizes.of(...given);
}

test("the sizes are those of the local model, as its server's list or the catalogue states them", async () => {
  expect(await sizesAt([{ name: 'llama3.2', contextWindow: 32_768 }])).toEqual({
    contextWindow: 32_768,
    maxOutput: 16_384,
  });
  expect(await sizesAt([{ name: 'gpt-6-luna' }])).toMatchObject({
    contextWindow: 922_000,
    maxOutput: 128_000,
  });
});

test('the sizes are unknown without a context in the list, and for a public provider', async () => {
  expect(await sizesAt([{ name: 'llama3.2' }])).toBeUndefined();
  expect(await sizesAt(undefined)).toBeUndefined();
});

test('a model without tools is a fault with a remedy', () => {
  expect(agentModelFault({ id: 'openai/gemma', takesTools: false })).toBe(
    'The model openai/gemma cannot use tools, which agents need: choose another model.',
  );
  expect(agentModelFault({ id: 'openai/gemma', takesTools: true })).toBeUndefined();
});

test("a context below the runtime's prompt is a fault with a remedy", () => {
  const of = (contextWindow: number) =>
    agentModelFault({ id: 'openai/small', localSizes: { contextWindow, maxOutput: 1 } });
  expect(of(8_192)).toMatch(
    /^The context of openai\/small is too small for agents: .* 8192 tokens/,
  );
  expect(of(16_384)).toBeUndefined();
  expect(agentModelFault({ id: 'openai/llama3.2' })).toBeUndefined();
});
