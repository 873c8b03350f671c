import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Runtime, Worker } from '@temporalio/worker';
import { afterEach, expect, test, vi } from 'vitest';
import type { ReconcileActivities } from '../../activities/reconcile.js';
import { projectRoot } from '../../dev/root.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { Polling } from '../../worker/polling.js';
import { runWorkers } from '../../worker/run-together.js';
import { installRuntime } from '../../worker/temporal-runtime.js';
import { WorkerMetrics } from '../../worker/worker-metrics.js';
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
  ['aps_agent_host_turns_taken', 'kind'],
  ['aps_agent_host_turns_waiting', 'kind'],
  ['aps_agent_supervisors_missing', 'host'],
] as const;

const HOST = 'measured';

afterEach(() => Runtime.instance().shutdown());

test("a worker exports Temporal's latency, slot and failure metrics, and logs the SDK's messages", async () => {
  const { lines, log } = keptLog();
  const metrics = new WorkerMetrics(await installRuntime(log));
  metrics.exportLimiters(hostLimiters(4));
  metrics.exportEgress(() => ({ status: 'guarded', reason: null, refuses: false }));
  metrics.recordSupervision(HOST, { missing: 2, stuck: 0, blocked: 0, unseen: 0 });
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
  const polling = new Polling();
  const notYet = () => polling.require();
  expect(notYet).toThrow('No task queue is polled yet');
  const code = await workflowCode();
  const make = () =>
    Promise.all([
      Worker.create({
        ...common,
        ...code,
        taskQueue: PLATFORM_TASK_QUEUE,
        activities: { ensureSupervisors: () => Promise.resolve(ALL_MOVE) },
      }),
      Worker.create({ ...common, taskQueue: containersTaskQueue(HOST), activities: host }),
    ]);
  const stop = new AbortController();
  const running = runWorkers(make, stop.signal, polling);
  try {
    const on = { taskQueue: PLATFORM_TASK_QUEUE };
    await client.workflow.start('aTypeThatNobodyKnows', { ...on, workflowId: 'fails' });
    await client.workflow.execute('reconcileHost', { ...on, workflowId: 'works', args: [HOST] });
    await expect(client.workflow.getHandle('nobody').describe()).rejects.toThrow();
    const isIn = (text: string, [name, label]: readonly [string, string]) =>
      text.split('\n').some((line) => line.startsWith(`${name}{`) && line.includes(`${label}="`));
    await vi.waitFor(async () => {
      const text = await metrics.read();
      expect(DOCUMENTED.filter((each) => !isIn(text, each))).toEqual([]);
    }, HANGS_MS);
    polling.require();
    // Our own metrics have only the labels that we set.
    const own = (await metrics.read()).split('\n').filter((line) => line.startsWith('aps_agent_'));
    expect(own).toContain('aps_agent_network_guarded 1');
    expect(own).toContain('aps_agent_host_turns_taken{kind="starts"} 0');
    expect(own).toContain(`aps_agent_supervisors_missing{host="${HOST}"} 2`);
    // The SDK's native side logs a failed task.
    await vi.waitFor(() => expect(lines.join()).toContain('"sdkComponent":"core"'), HANGS_MS);
    const page = await readFile(path.join(projectRoot, 'docs', 'operations.md'), 'utf8');
    expect(DOCUMENTED.filter(([name]) => !page.includes(name.replace('_bucket', '')))).toEqual([]);
  } finally {
    stop.abort();
    await running;
    await temporal.close();
  }
  expect(notYet).toThrow('No task queue is polled yet');
});
