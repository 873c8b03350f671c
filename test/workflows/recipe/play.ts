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

/** The workflow in one version, as a worker of that release has it. */
export function bundleVersion(version: Version): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: path.join(projectRoot, 'test/workflows/recipe', `${version}.ts`),
    logger: new DefaultLogger('ERROR'),
  });
}

/** Runs the workflow in one version to its end, on a server that skips time. */
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
