import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  DefaultLogger,
  Worker,
  bundleWorkflowCode,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { projectRoot } from '../../../dev/root.js';
import { activities } from './activities.js';
import type { remind } from './after.js';

export type Version = 'before' | 'after';

/** Bundles one version of the workflow, as its release does. */
export function bundleVersion(version: Version): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: path.join(projectRoot, 'test/workflows/recipe', `${version}.ts`),
    logger: new DefaultLogger('ERROR'),
  });
}

/** Runs one version of the workflow to its end on a time-skipping server. */
export async function play(
  environment: TestWorkflowEnvironment,
  version: Version,
): Promise<History> {
  const { client, nativeConnection: connection } = environment;
  const workflowId = `remind-${randomUUID()}`;
  const worker = await Worker.create({
    connection,
    taskQueue: workflowId,
    workflowBundle: await bundleVersion(version),
    activities,
  });
  const handle = await client.workflow.start<typeof remind>('remind', {
    workflowId,
    taskQueue: workflowId,
    args: ['somebody'],
  });
  await worker.runUntil(handle.result());
  return handle.fetchHistory();
}
