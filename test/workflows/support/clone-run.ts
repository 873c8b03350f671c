import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { CloneActivities } from '../../../activities/clones.js';
import type { cloneAgent } from '../../../workflows/clone-agent.js';
import { cloneAgentId } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';

/** Runs one clone with a worker of its own. */
export async function cloneRun(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: CloneActivities,
  cloneId: string = randomUUID(),
): Promise<{ readonly workflowId: string; readonly made: boolean }> {
  const workflowId = cloneAgentId(cloneId);
  const alone = { workflowId, activities };
  const made = await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof cloneAgent>('cloneAgent', { ...started, args: [cloneId] }),
  );
  return { workflowId, made };
}
