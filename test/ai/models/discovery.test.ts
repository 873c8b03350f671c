import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ProviderName } from '../../../src/ai/completion/provider-names.js';
import { ModelDiscovery } from '../../../src/ai/models/discovery.js';
import { isPrivateServer } from '../../../src/ai/models/private-server.js';
import { NO_PRIVATE_HOSTS, PrivateHosts } from '../../../src/platform/environment/private-hosts.js';
import { keptLog } from '../../support/platform-environment.js';
import { sendJson } from '../../support/provider-stub.js';
import { shippedModels } from '../../support/models.js';
import { startModelServer, type ModelServer } from '../../support/model-server.js';

let server: ModelServer;

beforeEach(async () => {
  server = await startModelServer('llama3.2:latest');
});
afterEach(() => server.close());

/** Starts the discovery at one provider, which has a key. */
async function discover(name: ProviderName = 'openai') {
  const providers = { [name]: { baseUrl: server.baseUrl, apiKey: 'sk' } };
  const models = shippedModels(providers);
  const { log, lines } = keptLog();
  const parts = { models, providers, privateHosts: NO_PRIVATE_HOSTS, log };
  const discovery = new ModelDiscovery(parts);
  await discovery.refresh();
  const available = () => models.current.entries.filter((entry) => entry.available);
  const warnings = () => lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
  return { discovery, models, available, warnings, ids: () => available().map(({ id }) => id) };
}

describe('the list of a private server', () => {
  test('a model that the catalogue lacks is free, in every plan, and has an unknown context of 8,192', async () => {
    const { available, models } = await discover();
    expect(available()).toEqual([
      expect.objectContaining({
        id: 'openai/llama3.2:latest',
        name: 'llama3.2:latest',
        plan: 'label',
        inputCost: 0,
        outputCost: 0,
        contextWindow: 8_192,
        available: true,
      }),
    ]);
    expect(models.current.find('openai/llama3.2')).toBe(available()[0]);
    const luna = models.current.find('openai/gpt-6-luna');
    expect([luna?.available, luna?.inputCost]).toEqual([false, 0.1]);
  });

  test('a model of the catalogue keeps its entry, also with the suffix of its latest version', async () => {
    server.list([{ id: 'gpt-6-luna:latest' }, { id: 'gpt-4' }]);
    const { available } = await discover();
    expect(available().map(({ id, inputCost }) => [id, inputCost])).toEqual([
      ['openai/gpt-6-luna', 0.1],
      ['openai/gpt-4', 30],
    ]);
  });

  test('invalid ids and models for embeddings are not preferred', async () => {
    server.list([
      { id: 'nomic-embed-text' },
      { id: '' },
      { id: 'half \ud83d' },
      { id: 'x'.repeat(90) },
      { name: 'no id' },
      { id: 'qwen3' },
    ]);
    const { ids } = await discover();
    expect(ids()).toEqual(['openai/qwen3', 'openai/nomic-embed-text']);
  });

  test.each([
    [{ max_model_len: 32_768 }, 32_768, 16_384],
    [{ context_window: 131_072, max_completion_tokens: 8_000 }, 131_072, 8_000],
    [{ context_length: 16_384, top_provider: { max_completion_tokens: 99_999 } }, 16_384, 16_384],
    [{ max_context_length: 4_096 }, 4_096, 2_048],
    [{ meta: { n_ctx: 2_048 } }, 2_048, 1_024],
    [{ max_model_len: '32768', context_window: -1, meta: 'none' }, 8_192, 8_192],
  ])('reads the sizes of %j', async (sizes, contextWindow, maxOutput) => {
    server.list([{ id: 'local', ...sizes }]);
    const { available } = await discover();
    expect(available()).toMatchObject([{ contextWindow, maxOutput }]);
  });

  test("Ollama's own API adds the context of a loaded model, and which models use tools", async () => {
    server.list(['loaded', 'plain', 'silent'].map((id) => ({ id, owned_by: 'library' })));
    server.details({
      '/api/ps': { models: [{ name: 'loaded', context_length: 4_096 }] },
      '/api/show loaded': { capabilities: ['completion', 'tools'] },
      '/api/show plain': { capabilities: ['completion'] },
    });
    const { available } = await discover();
    expect(available()).toMatchObject([
      { model: 'loaded', contextWindow: 4_096, takesTools: true },
      { model: 'plain', contextWindow: 8_192, takesTools: false },
      { model: 'silent', contextWindow: 8_192, takesTools: undefined },
    ]);
    expect(available().map(({ localSizes }) => localSizes?.contextWindow)).toEqual([
      4_096,
      undefined,
      undefined,
    ]);
  });

  test("a list may state which models use tools, and Ollama's own API is called on no other server", async () => {
    server.details({ '/api/show mute': { capabilities: ['tools'] } });
    server.list([
      { id: 'able', supported_parameters: ['tools', 'temperature'] },
      { id: 'mute', supported_parameters: ['temperature'] },
    ]);
    const { available } = await discover();
    expect(available().map(({ takesTools }) => takesTools)).toEqual([true, false]);
  });

  test("requests and reads each provider's own form", async () => {
    server.list((response) =>
      sendJson(response, 200, {
        data: [{ id: 'claude-haiku-5-5' }, { id: 'mine' }],
        models: [
          { name: 'models/gemini-2.5-flash', inputTokenLimit: 1_000 },
          { name: 'models/mine', inputTokenLimit: 2_000, outputTokenLimit: 500 },
          { name: 'models/draws', supportedGenerationMethods: ['predict'] },
        ],
      }),
    );
    const anthropic = await discover('anthropic');
    expect(anthropic.ids()).toEqual(['anthropic/claude-haiku-5-5', 'anthropic/mine']);
    const gemini = await discover('gemini');
    expect(gemini.ids()).toEqual(['gemini/gemini-2.5-flash', 'gemini/mine']);
    expect(gemini.available()[1]).toMatchObject({ contextWindow: 2_000, maxOutput: 500 });
    await discover('groq');
    expect(server.listed).toMatchObject([
      {
        path: '/v1/models?limit=1000',
        headers: { 'x-api-key': 'sk', 'anthropic-version': '2023-06-01' },
      },
      { path: '/v1/models?pageSize=1000', headers: { 'x-goog-api-key': 'sk' } },
      { path: '/v1/models', headers: { authorization: 'Bearer sk' } },
    ]);
  });

  test('an empty list is a list: no model is available', async () => {
    server.list([]);
    const { ids, warnings } = await discover();
    expect(ids()).toEqual([]);
    expect(warnings()).toEqual([]);
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ['a 500', (response) => sendJson(response, 500, { data: [] })],
    ['a 404', (response) => sendJson(response, 404, { data: [] })],
    ['a refused key', (response) => sendJson(response, 401, { data: [] })],
    ['a redirect', (response) => response.writeHead(302, { location: '/v1/models' }).end()],
    ['a page', (response) => response.end('<html>')],
    ['an object without a list', (response) => sendJson(response, 200, { data: 'none' })],
    ['more than 1 MiB', (response) => response.end(`{"data":[]}${' '.repeat(1024 * 1024)}`)],
    ['a broken connection', (response) => response.destroy()],
  ])('the catalogue stays after %s, and one warning names the provider', async (_what, answer) => {
    server.list(answer);
    const { discovery, ids, warnings } = await discover();
    await discovery.refresh();
    expect(ids()).toContain('openai/gpt-6-luna');
    expect(warnings()).toMatchObject([{ provider: 'openai' }]);
  });

  test('a server that stays silent is given up after two seconds', async () => {
    server.list(() => undefined);
    const began = performance.now();
    const { ids } = await discover();
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(ids()).toContain('openai/gpt-6-luna');
  });

  test('the last list stays while the server is unavailable, and its return ends the warning', async () => {
    const { discovery, ids, warnings } = await discover();
    server.list((response) => sendJson(response, 503, {}));
    await discovery.refresh();
    expect(ids()).toEqual(['openai/llama3.2:latest']);
    server.list([{ id: 'qwen3' }]);
    await discovery.refresh();
    expect(ids()).toEqual(['openai/qwen3']);
    expect(warnings()).toHaveLength(1);
  });

  test('the list is requested at the start and every five minutes, until the end', async () => {
    const { discovery } = await discover();
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      await discovery.start();
      expect(server.listed).toHaveLength(2);
      vi.advanceTimersByTime(5 * 60_000);
      await vi.waitFor(() => expect(server.listed).toHaveLength(3));
      discovery.close();
      vi.advanceTimersByTime(60 * 60_000);
      expect(server.listed).toHaveLength(3);
    } finally {
      discovery.close();
      vi.useRealTimers();
    }
  });
});

describe('the addresses whose lists are requested', () => {
  const hosts = new PrivateHosts();
  hosts.add('models.corp.example');

  test.each([
    ['http://127.0.0.1:11434/v1', true],
    ['http://localhost:11434/v1', true],
    ['http://[::1]:11434/v1', true],
    ['http://[fd00::1]/v1', true],
    ['http://10.0.0.5/v1', true],
    ['http://172.17.0.1:8000/v1', true],
    ['http://192.168.1.20:1234/v1', true],
    ['http://100.64.0.1/v1', true],
    ['https://models.corp.example/v1', true],
    ['https://8.8.8.8/v1', false],
    ['https://[2606:4700::1111]/v1', false],
    ['https://no-such-name.invalid/v1', false],
  ])('%s: %s', async (address, isPrivate) => {
    expect(await isPrivateServer(address, hosts)).toBe(isPrivate);
  });

  test('a provider at a public address offers the models of the catalogue', async () => {
    const providers = { openai: { baseUrl: 'https://8.8.8.8/v1', apiKey: 'sk' } };
    const models = shippedModels(providers);
    const { log, lines } = keptLog();
    const parts = { models, providers, privateHosts: NO_PRIVATE_HOSTS, log };
    await new ModelDiscovery(parts).refresh();
    expect(models.current.find('openai/gpt-6-luna')?.available).toBe(true);
    expect(lines).toEqual([]);
  });
});
