import type { Client } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** One workflow, and what it asks for. */
export interface Alone {
  /** Of the workflow, and of the task queue that it has to itself. */
  readonly workflowId: string;
  readonly activities?: object;
  /** What it asks for on another task queue. */
  readonly elsewhere?: { readonly taskQueue: string; readonly activities: object };
}

/** Where and as what a workflow is started that is run alone. */
interface Started {
  readonly workflowId: string;
  readonly taskQueue: string;
}

/**
 * Workers for one workflow alone, for as long as something is done with it. They keep nothing of it in
 * memory, so each step of it is also a replay.
 */
export async function runAlone<Result>(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  { workflowId, activities, elsewhere }: Alone,
  work: (workflows: Client['workflow'], started: Started) => Promise<Result>,
): Promise<Result> {
  const { client, nativeConnection: connection, namespace = 'default' } = environment;
  const common = { connection, namespace };
  const started = { workflowId, taskQueue: workflowId };
  const [runs, others] = await Promise.all([
    Worker.create({
      ...{ ...common, ...IN_THIS_THREAD, workflowBundle, maxCachedWorkflows: 0 },
      ...{ taskQueue: workflowId, ...(activities && { activities }) },
    }),
    elsewhere && Worker.create({ ...common, ...elsewhere }),
  ]);
  const working = () => work(client.workflow, started);
  return runs.runUntil(() => (others ? others.runUntil(working) : working()));
}
