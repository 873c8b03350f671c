import type { WatchdogMemory } from '../../../src/types/watchdog.js';
import type { FakeAgent } from './fake-agent.js';
import { RUNNING, type Supervised, type WorkflowLab } from './workflow-lab.js';

/** Starts a supervisor that watches an agent, which runs by default. */
export async function watched(
  lab: WorkflowLab,
  agent: FakeAgent,
  memory: Partial<WatchdogMemory> = {},
): Promise<Supervised> {
  const supervisor = await lab.supervise(agent, { watchdog: { ...RUNNING, ...memory } });
  if ((memory.state ?? 'running') === 'running') await agent.reached('watchHealth');
  return supervisor;
}

/** Ends the agent's container, which becomes healthy again at its next start. */
export async function dies(agent: FakeAgent, supervisor: Supervised): Promise<void> {
  agent.health = 'stopped';
  agent.on('startContainer', () => {
    agent.health = 'healthy';
  });
  await supervisor.containerEnded();
}
