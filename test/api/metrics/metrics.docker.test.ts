import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMetricsListener } from '../../../api/metrics/metrics.js';
import type { Listening } from '../../../api/http/server.js';
import { Metrics } from '../../../src/metrics.js';
import { shippedModels } from '../../support/models.js';
import { call } from '../../support/http.js';
import { testPlatform, type TestPlatform } from '../../support/platform.js';

let platform: TestPlatform;
let listening: Listening;
const metrics = new Metrics();

beforeAll(async () => {
  platform = await testPlatform({ workers: false });
  const { settings, log } = platform;
  const listener = createMetricsListener({ settings, metrics, log });
  listening = await listener.listen('127.0.0.1', 0);
});
afterAll(async () => {
  await listening?.close();
  await platform?.close();
});

test('exports the provider, outcome and duration of AI attempts to Prometheus', async () => {
  const entry = shippedModels().current.find('openai/gpt-6-luna');
  const luna = { provider: 'openai', model: 'gpt-6-luna' };
  metrics.recordAttempt({ ...luna, outcome: 'ok', ms: 400 }, entry);
  metrics.recordAttempt({ ...luna, outcome: 'timeout', ms: 30_000 }, entry);
  const madeUp = { provider: 'openai', model: 'made up by an agent' };
  metrics.recordAttempt({ ...madeUp, outcome: 'ok', ms: 1 }, undefined);
  const { status, text, headers } = await call(listening.url, 'GET', '/metrics');
  expect([status, headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  const of = (model: string, outcome: string) =>
    `{provider="openai",model="${model}",outcome="${outcome}"}`;
  expect(text).toContain(`ai_attempt_seconds_sum${of('gpt-6-luna', 'ok')} 0.4`);
  expect(text).toContain(`ai_attempt_seconds_count${of('gpt-6-luna', 'timeout')} 1`);
  expect(text).toContain(`ai_attempt_seconds_count${of('other', 'ok')} 1`);
  expect(text).not.toContain('made up');
});
