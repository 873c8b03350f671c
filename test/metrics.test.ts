import { expect, test } from 'vitest';
import { loadCatalogue } from '../src/ai/models/catalogue-file.js';
import { ModelSet } from '../src/ai/models/model-set.js';
import { Metrics } from '../src/metrics.js';

const models = new ModelSet(
  loadCatalogue(),
  {},
  new Map([['openai', [{ name: 'named-by-a-server' }]]]),
);
const entryOf = (id: string) => models.entries.find((entry) => entry.id === id);

test('exports the provider, outcome and duration of AI attempts', async () => {
  const metrics = new Metrics();
  const luna = { provider: 'openai', model: 'gpt-6-luna' };
  metrics.recordAttempt({ ...luna, outcome: 'ok', ms: 400 }, entryOf('openai/gpt-6-luna'));
  metrics.recordAttempt({ ...luna, outcome: 'timeout', ms: 30_000 }, entryOf('openai/gpt-6-luna'));
  const text = await metrics.read();
  const of = (outcome: string) => `{provider="openai",model="gpt-6-luna",outcome="${outcome}"}`;
  expect(text).toContain(`aps_ai_attempt_seconds_sum${of('ok')} 0.4`);
  expect(text).toContain(`aps_ai_attempt_seconds_count${of('timeout')} 1`);
});

test('names no model that the catalogue lacks, so that agents and servers add no series', async () => {
  const metrics = new Metrics();
  const entry = entryOf('openai/named-by-a-server');
  expect(entry).toBeDefined();
  for (const [model, known] of [
    ['made up by an agent', undefined],
    ['made up again', undefined],
    ['named-by-a-server', entry],
  ] as const) {
    metrics.recordAttempt({ provider: 'openai', model, outcome: 'ok', ms: 1 }, known);
  }
  const counts = (await metrics.read())
    .split('\n')
    .filter((line) => line.startsWith('aps_ai_attempt_seconds_count'));
  expect(counts).toEqual([
    'aps_ai_attempt_seconds_count{provider="openai",model="other",outcome="ok"} 3',
  ]);
});
