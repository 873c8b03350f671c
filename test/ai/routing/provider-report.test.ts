import { afterEach, beforeEach, expect, test } from 'vitest';
import { ModelDiscovery } from '../../../src/ai/models/discovery.js';
import { Models } from '../../../src/ai/models/models.js';
import {
  checkProviders,
  describeReport,
  needsAction,
} from '../../../src/ai/routing/provider-report.js';
import { loadSettings } from '../../../src/settings.js';
import { startAiProviders, type AiProviders } from '../../support/ai-providers.js';
import { keptLog, testEnvironment } from '../../support/platform-environment.js';
import { sendJson } from '../../support/provider-stub.js';
import { startModelServer, type ModelServer } from '../../support/model-server.js';

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

const settingsOf = (env: Record<string, string>) =>
  loadSettings(testEnvironment({ DATABASE_URL: 'postgres://x/y', INTERNAL_API_KEY: 'k' }, env)).ai;

async function report(env: Record<string, string>) {
  const found = await checkProviders(settingsOf(env), keptLog().log);
  return { line: describeReport(found), needsAction: needsAction(found), found };
}

test('names the answering providers, the number of their models and the default', async () => {
  const { found, ...said } = await report({ OPENAI_BASE_URL: server.baseUrl });
  expect(said).toEqual({
    line: 'AI: openai answers, with 1 model; the default model is openai/llama3.2:latest.',
    needsAction: false,
  });
  expect(found.providers).toEqual([{ provider: 'openai', state: 'answers', models: 1 }]);
});

test('names a refused key and a provider that does not answer', async () => {
  const said = await report({
    ...refusing.env('groq'),
    OPENAI_BASE_URL: server.baseUrl,
    GEMINI_BASE_URL: 'http://127.0.0.1:1/v1beta',
  });
  expect(said.line).toBe(
    'AI: gemini does not answer; groq refuses its key (GROQ_API_KEY); openai answers, with 1 model; ' +
      'the default model is openai/llama3.2:latest.',
  );
  expect(said.needsAction).toBe(true);
});

test('names the setting to set if no model is available', async () => {
  expect(await report({})).toMatchObject({
    line:
      'AI: no model is available: Set OPENAI_API_KEY, or OPENAI_BASE_URL for any address with its API ' +
      'format, and restart.',
    needsAction: true,
  });
  server.list([]);
  expect(await report({ OPENAI_BASE_URL: server.baseUrl })).toMatchObject({
    line:
      'AI: openai answers, with 0 models; no model is available: Load a model on the server at ' +
      'OPENAI_BASE_URL, or list its models in AI_MODELS_FILE.',
    needsAction: true,
  });
});

test("OpenRouter's key is shown at its own endpoint, because its list is public", async () => {
  const paths: string[] = [];
  const list = (status: number) => (response: Parameters<typeof sendJson>[0]) => {
    const { path = '' } = server.listed.at(-1) ?? {};
    paths.push(path);
    sendJson(response, path === '/v1/key' ? status : 200, { data: [{ id: 'a/b' }] });
  };
  const env = { OPENROUTER_BASE_URL: server.baseUrl, OPENROUTER_API_KEY: 'sk' };
  for (const [status, state] of [
    [401, 'key_refused'],
    [200, 'answers'],
    [404, 'answers'],
  ] as const) {
    server.list(list(status));
    const { found } = await report(env);
    expect(found.providers).toEqual([{ provider: 'openrouter', state, models: 1 }]);
  }
  expect(paths.toSorted()).toEqual([...Array(3).fill('/v1/key'), ...Array(3).fill('/v1/models')]);
});

test('a provider whose list was not read is queried once, and its list changes nothing', async () => {
  const settings = settingsOf({ OPENAI_BASE_URL: server.baseUrl });
  const models = new Models(settings);
  const discovery = new ModelDiscovery({ ...settings, models, log: keptLog().log });
  for (let n = 0; n < 2; n++)
    expect([...(await discovery.states())]).toEqual([['openai', 'answers']]);
  expect(server.listed).toHaveLength(1);
  expect(models.current.find('openai/gpt-6-luna')?.available).toBe(true);
});
