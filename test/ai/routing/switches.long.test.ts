import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusal } from '../../support/provider-rules.js';
import { sendEvents, startAiProviders, type AiProviders } from '../../support/ai-providers.js';
import { call } from '../../support/http.js';
import { testPlatform, type TestPlatform } from '../../support/platform.js';
import { sendJson } from '../../support/provider-stub.js';
import { PROVIDER_NAMES, type ProviderName } from '../../../src/ai/completion/provider-names.js';
import { RECORDINGS } from '../providers/client-recordings.js';
import { messageOf, toolAnswer } from '../providers/tool-answers.js';
import { apiKeyOf } from './support.js';

const MODEL: Readonly<Record<ProviderName, string>> = {
  openrouter: 'openai/gpt-6-luna',
  gemini: 'gemini-3.8-flash',
  groq: 'openai/gpt-oss-120b',
  anthropic: 'claude-opus-4-6',
  openai: 'gpt-6-luna',
  minimax: 'MiniMax-M3',
};

let providers: AiProviders;
let platform: TestPlatform;
let key: string;
/** The reasons for which a provider refused a request. */
let refusals: string[] = [];

beforeAll(async () => {
  providers = await startAiProviders();
  platform = await testPlatform({ workers: false, dead: ['docker'], env: providers.env() });
  key = await apiKeyOf(platform, await platform.signUp('network'));
  for (const provider of PROVIDER_NAMES) {
    providers.behave(provider, ({ body, model, streams }, response) => {
      const server = provider === 'openai' ? 'own' : provider;
      const reason = refusal(server, model, body);
      if (reason !== undefined) {
        refusals.push(`${provider}: ${reason}`);
        return sendJson(response, 400, { error: { message: reason } });
      }
      const { whole, events } = toolAnswer(server, model, providers.requests.length);
      if (streams) sendEvents(response, events);
      else sendJson(response, 200, whole);
    });
  }
});
afterAll(async () => {
  await platform?.close();
  await providers?.close();
});

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };

/** Returns the message of a provider's answer to the conversation, whole or streamed. */
async function answerOf(provider: ProviderName, messages: readonly object[], stream: boolean) {
  const { status, body, text } = await call(platform.backendUrl, 'POST', '/v1/chat/completions', {
    headers: { authorization: `Bearer ${key}` },
    body: {
      model: `${provider}/${MODEL[provider]}`,
      messages,
      stream,
      max_tokens: 8_000,
      temperature: 0.7,
      thinking: { type: 'enabled', budget_tokens: 4_000 },
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: {} } }],
    },
  });
  expect([provider, status, refusals]).toEqual([provider, 200, []]);
  if (!stream) return body.choices[0].message;
  const data = text.split('\n').filter((line) => line.startsWith('data: {'));
  return messageOf(data.map((line) => line.slice('data: '.length)));
}

test('a conversation of fifty turns with tools, images and thinking continues over every switch', async () => {
  refusals = [];
  const order = PROVIDER_NAMES.flatMap((one) => PROVIDER_NAMES.flatMap((other) => [one, other]));
  const messages: object[] = [
    { role: 'developer', content: 'Be short.' },
    { role: 'user', content: [{ type: 'text', text: 'Weather here?' }, IMAGE] },
  ];
  for (const [turn, provider] of order.entries()) {
    const message = await answerOf(provider, messages, turn % 2 === 1);
    messages.push(message, {
      role: 'tool',
      tool_call_id: message.tool_calls[0].id,
      content: turn % 3 === 0 ? [{ type: 'text', text: 'a map' }, IMAGE] : '21 °C',
    });
    if (turn % 5 === 4) messages.push({ role: 'user', content: 'And tomorrow?' });
  }
  expect(order.length).toBeGreaterThan(50);
  expect(providers.asked()).toHaveLength(order.length);
});

test.each(RECORDINGS)('the last request of $client is answered by every provider', async (made) => {
  refusals = [];
  for (const provider of PROVIDER_NAMES) {
    const { status, text } = await call(platform.backendUrl, 'POST', '/v1/chat/completions', {
      headers: { authorization: `Bearer ${key}` },
      body: { ...made.request, model: `${provider}/${MODEL[provider]}` },
    });
    expect([provider, status, refusals]).toEqual([provider, 200, []]);
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
  }
});
