import type { Client } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { IN_THIS_THREAD } from './in-this-thread.js';

/** One workflow with its activities. */
export interface Alone {
  /** Id of the workflow and of its own task queue. */
  readonly workflowId: string;
  readonly activities?: object;
  /** Activities that the workflow requests on another task queue. */
  readonly elsewhere?: { readonly taskQueue: string; readonly activities: object };
}

/** Start parameters of a workflow that runs without others. */
interface Started {
  readonly workflowId: string;
  readonly taskQueue: string;
}

/**
 * Runs workers for a single workflow until the callback ends. They cache no workflow, so that each step
 * is also a replay.
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
      ...common,
      ...IN_THIS_THREAD,
      workflowBundle,
      maxCachedWorkflows: 0,
      taskQueue: workflowId,
      ...(activities && { activities }),
    }),
    elsewhere && Worker.create({ ...common, ...elsewhere }),
  ]);
  const working = () => work(client.workflow, started);
  return runs.runUntil(() => (others ? others.runUntil(working) : working()));
}
