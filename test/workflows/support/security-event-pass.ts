import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { SecurityEventActivities } from '../../../activities/security-events.js';
import type { applySecurityEvent } from '../../../workflows/apply-security-event.js';
import { applySecurityEventId } from '../../../workflows/ids.js';
import { runAlone } from './run-alone.js';

/** Applies one security event token with a worker of its own. */
export async function securityEventPass(
  environment: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundleWithSourceMap,
  activities: SecurityEventActivities,
): Promise<{ readonly workflowId: string }> {
  const id = randomUUID();
  const workflowId = applySecurityEventId(id);
  const alone = { workflowId, activities };
  await runAlone(environment, workflowBundle, alone, (workflows, started) =>
    workflows.execute<typeof applySecurityEvent>('applySecurityEvent', { ...started, args: [id] }),
  );
  return { workflowId };
}
