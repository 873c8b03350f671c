import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from '@temporalio/worker';

export type WorkflowCode = Pick<WorkerOptions, 'workflowBundle'>;

/**
 * Returns the workflow bundle of the build, beside the folder of this file. @throws Error if it is missing.
 */
export function builtWorkflows(): WorkflowCode {
  const codePath = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
  if (!existsSync(codePath)) throw new Error('The workflow bundle is missing: run npm run build');
  return { workflowBundle: { codePath } };
}
