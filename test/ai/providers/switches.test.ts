import { expect, test } from 'vitest';
import type { ChatMessage, ChatRequest } from '../../../src/ai/completion/completion.js';
import {
  PROVIDER_BASE_URLS,
  PROVIDER_NAMES,
  type ProviderName,
} from '../../../src/ai/completion/provider-names.js';
import { adapterOf } from '../../../src/ai/providers/adapters.js';
import { supportedRequest } from '../../../src/ai/routing/supported-request.js';
import { refusal } from '../../support/provider-rules.js';
import { RECORDINGS } from './client-recordings.js';
import { messageOf, toolAnswer } from './tool-answers.js';

const MODEL: Readonly<Record<ProviderName, string>> = {
  openrouter: 'openai/gpt-6-luna',
  gemini: 'gemini-3.8-flash',
  groq: 'openai/gpt-oss-120b',
  anthropic: 'claude-opus-4-6',
  openai: 'gpt-6-luna',
  minimax: 'MiniMax-M3',
};

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };

const SETTINGS = {
  max_tokens: 8_000,
  temperature: 0.7,
  thinking: { type: 'enabled', budget_tokens: 4_000 },
  tools: [{ type: 'function', function: { name: 'get_weather', parameters: {} } }],
};

/** A sequence of providers in which each one follows every other. */
const ORDER = PROVIDER_NAMES.flatMap((one) => PROVIDER_NAMES.flatMap((other) => [one, other]));

/** Sends the conversation to a provider, and returns the message that its client receives. */
function answerTo(
  messages: readonly ChatMessage[],
  provider: ProviderName,
  turn: number,
  settings: object = SETTINGS,
) {
  const model = MODEL[provider];
  const isStream = turn % 2 === 1;
  const body = supportedRequest({ ...settings, messages });
  const request: ChatRequest = { ...body, model, ...(isStream && { stream: true }) };
  const adapter = adapterOf(provider);
  const config = { baseUrl: PROVIDER_BASE_URLS[provider], apiKey: 'key' };
  const sent = JSON.parse(adapter.request(config, request).body);
  expect([turn, provider, refusal(provider, model, sent)]).toEqual([turn, provider, undefined]);
  const { whole, events } = toolAnswer(provider, model, turn);
  if (!isStream) {
    const { json } = adapter.readAnswer(JSON.stringify(whole), request);
    return { message: JSON.parse(json).choices[0].message, body: sent };
  }
  const reader = adapter.openStream(request);
  const chunks = events.flatMap(({ event, data }) =>
    reader.read({ event, data: typeof data === 'string' ? data : JSON.stringify(data) }),
  );
  return { message: messageOf(chunks), body: sent };
}

const BEGUN = {
  client: 'no client',
  request: {
    ...SETTINGS,
    messages: [
      { role: 'developer', content: 'Be short.' },
      { role: 'user', content: [{ type: 'text', text: 'Weather here?' }, IMAGE] },
    ],
  },
};

test.each([BEGUN, ...RECORDINGS])(
  'a conversation of $client with tools, images and thinking continues over every switch',
  ({ request: { messages: begun, ...settings } }) => {
    const messages: ChatMessage[] = [...begun];
    for (const [turn, provider] of ORDER.entries()) {
      const { message } = answerTo(messages, provider, turn, {
        ...settings,
        thinking: SETTINGS.thinking,
        stream: undefined,
      });
      messages.push(message, {
        role: 'tool',
        tool_call_id: message.tool_calls[0].id,
        content: turn % 3 === 0 ? [{ type: 'text', text: 'a map' }, IMAGE] : '21 °C',
      });
      if (turn % 5 === 4) messages.push({ role: 'user', content: 'And tomorrow?' });
    }
    expect(ORDER.length).toBeGreaterThan(70);
  },
);

test("a model of Anthropic receives its own thinking with the tool's result", () => {
  for (const turn of [0, 1]) {
    const messages: ChatMessage[] = [{ role: 'user', content: 'Weather here?' }];
    const { message } = answerTo(messages, 'anthropic', turn);
    messages.push(message, { role: 'tool', tool_call_id: `toolu_${turn}`, content: '21 °C' });
    const { body } = answerTo(messages, 'anthropic', turn);
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 4_000 });
    expect(body.messages[1].content.map(({ type }: { type: string }) => type)).toEqual([
      'thinking',
      'text',
      'tool_use',
    ]);
  }
});
