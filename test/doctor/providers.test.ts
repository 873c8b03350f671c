import { afterEach, beforeEach, expect, test } from 'vitest';
import { examine } from '../../src/doctor/check.js';
import { providersCheck } from '../../src/doctor/providers-check.js';
import { startAiProviders, type AiProviders } from '../support/ai-providers.js';
import { startModelServer, type ModelServer } from '../support/model-server.js';

let server: ModelServer;
let refusing: AiProviders;

beforeEach(async () => {
  server = await startModelServer('llama3.2:latest');
  refusing = await startAiProviders(); // these refuse every request for a list
});
afterEach(async () => {
  await server.close();
  await refusing.close();
});

async function findingsOf(env: Readonly<Record<string, string>>): Promise<string[]> {
  const findings = await examine([providersCheck], { AI_PROVIDER: 'openai', ...env });
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test('names what answers, and the default model', async () => {
  expect(await findingsOf({ OPENAI_BASE_URL: server.baseUrl })).toEqual([
    'ok: openai answers, with 1 model.',
    'ok: The default model is openai/llama3.2:latest.',
  ]);
});

test('names a refused key and a provider that does not answer', async () => {
  const findings = await findingsOf({
    ...refusing.env('groq'),
    OPENAI_BASE_URL: server.baseUrl,
    GEMINI_BASE_URL: 'http://127.0.0.1:1/v1beta',
  });
  expect(findings).toContain('failure: groq refuses its key: set a valid GROQ_API_KEY.');
  expect(findings).toContainEqual(expect.stringMatching(/^warning: gemini does not answer: /));
  expect(findings).toContain('ok: The default model is openai/llama3.2:latest.');
});

test('names the setting to set if no model is available', async () => {
  expect(await findingsOf({})).toEqual([
    expect.stringMatching(/^failure: No AI model is available: Set OPENAI_API_KEY/),
  ]);
  server.list([]);
  expect((await findingsOf({ OPENAI_BASE_URL: server.baseUrl })).at(-1)).toMatch(
    /^failure: No AI model is available: Load a model on the server at OPENAI_BASE_URL/,
  );
});

test('warns of a default model that agents cannot use', async () => {
  server.list([{ id: 'tiny', context_length: 4_096 }]);
  expect((await findingsOf({ OPENAI_BASE_URL: server.baseUrl })).at(-1)).toMatch(
    /^warning: The context of openai\/tiny is too small for agents/,
  );
});
