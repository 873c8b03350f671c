import { expect, test } from 'vitest';
import { ProcessMetrics } from '../../../src/platform/operators/process-metrics.js';

test('exports the default metrics of Node and the utilization of the event loop', async () => {
  const metrics = new ProcessMetrics();
  metrics.collectDefaults();
  const text = await metrics.read();
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'nodejs_heap_size_used_bytes',
    'nodejs_gc_duration_seconds_count',
    'nodejs_eventloop_lag_seconds',
    'nodejs_version_info',
  ]) {
    expect(text).toContain(`# TYPE ${name.replace(/_count$/, '')} `);
  }
  const [, share] = /^aps_event_loop_utilization (.+)$/m.exec(text) ?? [];
  expect(Number(share)).toBeGreaterThan(0);
  expect(Number(share)).toBeLessThanOrEqual(1);
  // Its timer would keep an idle process busy.
  expect(text).not.toContain('nodejs_eventloop_lag_p99_seconds');
});
