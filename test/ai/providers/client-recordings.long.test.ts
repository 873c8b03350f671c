import { describe, expect, test } from 'vitest';
import type { ChatMessage } from '../../../src/ai/completion/completion.js';
import { anthropic } from '../../../src/ai/providers/anthropic/anthropic.js';
import { MODELS, refusedBy, SERVERS } from './conversations.js';
import { recordingOf, RECORDINGS } from './client-recordings.js';

const THINKING = { thinking: { type: 'enabled', budget_tokens: 4_000 } };

describe.each(RECORDINGS)('the conversation of $client', ({ request: recorded }) => {
  const { messages, ...settings } = recorded;
  const turns = messages.flatMap(({ role }, at) => (role === 'assistant' ? [at] : []));

  test('the conversation of a client has fifty turns with tools and images', () => {
    expect(turns.length).toBeGreaterThanOrEqual(50);
    const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    expect(parts.filter(({ type }) => type === 'image_url').length).toBeGreaterThan(2);
    expect(messages.filter(({ role }) => role === 'tool').length).toBeGreaterThan(40);
  });

  test.each(SERVERS)('continues at %s after each turn', (server) => {
    const models = MODELS[server];
    for (const [turn, at] of [...turns, messages.length].entries()) {
      // Each model in turn, with and without thinking.
      const model = models[turn % models.length] ?? '';
      const further = Math.floor(turn / models.length) % 2 === 0 ? THINKING : {};
      const request = { ...settings, ...further, messages: messages.slice(0, at) };
      expect([at, model, refusedBy(server, model, request)]).toEqual([at, model, undefined]);
    }
  });
});

test('a model of Anthropic receives the thinking that a client sends back with a result', () => {
  const model = 'claude-opus-4-6';
  const { messages, ...settings } = recordingOf('opencode-openrouter').request;
  const isThought = ({ role, tool_calls: calls, reasoning_details: details }: ChatMessage) =>
    role === 'assistant' &&
    calls !== undefined &&
    JSON.stringify(details ?? '').includes(`anthropic/${model}`);
  const at = messages.findIndex(isThought);
  const until = messages.findIndex(({ role }, next) => next > at && role === 'assistant');
  const request = { ...settings, ...THINKING, messages: messages.slice(0, until), model };
  const body = JSON.parse(anthropic.request({ baseUrl: '', apiKey: 'key' }, request).body);
  expect(body.thinking).toEqual(THINKING.thinking);
  const last = body.messages.findLast(({ role }: ChatMessage) => role === 'assistant');
  expect(last.content[0].type).toBe('thinking');
});
