import { describe, expect, test } from 'vitest';
import { MODELS, refusedBy, SERVERS } from './conversations.js';
import { RECORDINGS } from './client-recordings.js';

const THINKING = { thinking: { type: 'enabled', budget_tokens: 4_000 } };

describe.each(RECORDINGS)('the conversation of $client', ({ request: recorded }) => {
  const { messages, ...settings } = recorded;
  const turns = messages.flatMap(({ role }, at) => (role === 'assistant' ? [at] : []));

  test('has fifty turns with tools and images', () => {
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
