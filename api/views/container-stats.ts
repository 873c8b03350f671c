import { z } from 'zod';
import type { ContainerStats } from '../../src/containers/container-view.js';
import { ContainerMissingError } from '../../src/containers/container-errors.js';
import type { AgentContainers } from '../../src/containers/agent-containers.js';

export const containerStats = z.strictObject({
  cpuPercent: z.number().describe('100 is one core fully used'),
  memoryBytes: z.number(),
  memoryLimitBytes: z.number(),
  networkReceivedBytes: z.number(),
  networkSentBytes: z.number(),
  processes: z.number(),
  readAt: z.iso.datetime(),
});

/** What the agent's container uses now; null when it does not run. */
export async function statsOf(
  containers: AgentContainers,
  agentId: string,
): Promise<ContainerStats | null> {
  const state = await containers.inspect(agentId);
  if (state?.status !== 'running') return null;
  try {
    return await containers.stats(agentId);
  } catch (error) {
    // It ended in between.
    if (error instanceof ContainerMissingError) return null;
    throw error;
  }
}
