import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { Runtime, Worker } from '@temporalio/worker';
import { afterEach, expect, test, vi } from 'vitest';
import type { ReconcileActivities } from '../../activities/reconcile.js';
import { freePort } from '../../dev/ports.js';
import { projectRoot } from '../../dev/root.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { reportLimiters } from '../../worker/report-limiters.js';
import { installRuntime } from '../../worker/temporal-runtime.js';
import { PLATFORM_TASK_QUEUE, containersTaskQueue } from '../../workflows/ids.js';
import { keptLog } from '../support/platform-environment.js';
import { testTemporal, workflowCode } from '../support/temporal.js';
import { ALL_MOVE } from '../workflows/support/reconcile-pass.js';
import { HANGS_MS } from '../support/until.js';

/** Metrics documented in docs/operations.md, each with a label used in queries. */
const DOCUMENTED = [
  ['temporal_workflow_task_schedule_to_start_latency_seconds_bucket', 'task_queue'],
  ['temporal_activity_schedule_to_start_latency_seconds_bucket', 'task_queue'],
  ['temporal_worker_task_slots_used', 'worker_type'],
  ['temporal_worker_task_slots_available', 'worker_type'],
  ['temporal_workflow_task_execution_failed_total', 'workflow_type'],
  ['temporal_activity_execution_failed_total', 'activity_type'],
  ['temporal_request_failure_total', 'operation'],
  ['temporal_num_pollers', 'poller_type'],
  ['temporal_sticky_cache_size', 'task_queue'],
  ['agent_host_turns_taken', 'kind'],
  ['agent_host_turns_waiting', 'kind'],
] as const;

const HOST = 'measured';

afterEach(() => Runtime.instance().shutdown());

test("a worker exports Temporal's latency, slot and failure metrics, and logs the SDK's messages", async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const { lines, log } = keptLog();
  installRuntime(log, address);
  const temporal = await testTemporal({ hasRuntime: true });
  const { client, connection, namespace } = temporal;
  const common = { connection, namespace };
  let attempts = 0;
  const host: ReconcileActivities = {
    wakeDrifted() {
      if (attempts++ === 0) throw new Error('not yet');
      return Promise.resolve(0);
    },
    removeOrphans: () => Promise.resolve([]),
  };
  const workers = await Promise.all([
    Worker.create({
      ...common,
      ...(await workflowCode()),
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: { ensureSupervisors: () => Promise.resolve(ALL_MOVE) },
    }),
    Worker.create({ ...common, taskQueue: containersTaskQueue(HOST), activities: host }),
  ]);
  const running = Promise.all(workers.map((worker) => worker.run()));
  const stop = new AbortController();
  const telling = reportLimiters(hostLimiters(4), Runtime.instance().metricMeter, stop.signal);
  try {
    const on = { taskQueue: PLATFORM_TASK_QUEUE };
    await client.workflow.start('aTypeThatNobodyKnows', { ...on, workflowId: 'fails' });
    await client.workflow.execute('reconcileHost', { ...on, workflowId: 'works', args: [HOST] });
    await expect(client.workflow.getHandle('nobody').describe()).rejects.toThrow();
    const scrape = async () => (await fetch(`http://${address}/metrics`)).text();
    const isIn = (text: string, [name, label]: readonly [string, string]) =>
      text.split('\n').some((line) => line.startsWith(`${name}{`) && line.includes(`${label}="`));
    await vi.waitFor(async () => {
      const text = await scrape();
      expect(DOCUMENTED.filter((each) => !isIn(text, each))).toEqual([]);
    }, HANGS_MS);
    // The SDK's native side logs a failed task.
    await vi.waitFor(() => expect(lines.join()).toContain('"sdkComponent":"core"'), HANGS_MS);
    const page = await readFile(path.join(projectRoot, 'docs', 'operations.md'), 'utf8');
    expect(DOCUMENTED.filter(([name]) => !page.includes(name.replace('_bucket', '')))).toEqual([]);
  } finally {
    stop.abort();
    for (const worker of workers) worker.shutdown();
    await Promise.all([running, telling]);
    await temporal.close();
  }
});

test('a worker whose metrics port is in use runs without metrics and logs that', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  try {
    const { port } = other.address() as { port: number }; // never a string for a TCP listener
    const { log, lines } = keptLog();
    installRuntime(log, `127.0.0.1:${port}`);
    expect(Runtime.instance()).toBeDefined();
    expect(lines.join()).toContain('worker metrics cannot be served');
  } finally {
    other.close();
  }
});
