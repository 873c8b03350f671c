import type { AgentRow, PreviousRelease } from '../../platform/database/models.js';

/** Returns the agent's present state, stored for the rollback of an operation. */
export function releaseOf(agent: AgentRow, operationId: string): PreviousRelease {
  const { image, runtimeVersion, volume, plan, aiProvider, model, config } = agent;
  return { operationId, image, runtimeVersion, volume, plan, aiProvider, model, config };
}
