import type { WatchdogMemory } from '../../../src/types/watchdog.js';
import type { FakeAgent } from './fake-agent.js';
import { RUNNING, type Supervised, type WorkflowLab } from './workflow-lab.js';

/** A supervisor that watches an agent, one that runs unless said. */
export async function watched(
  lab: WorkflowLab,
  agent: FakeAgent,
  memory: Partial<WatchdogMemory> = {},
): Promise<Supervised> {
  const supervisor = await lab.supervise(agent, { watchdog: { ...RUNNING, ...memory } });
  if ((memory.state ?? 'running') === 'running') await agent.reached('watchHealth');
  return supervisor;
}

/** The container ends, and lives again once it is started. */
export async function dies(agent: FakeAgent, supervisor: Supervised): Promise<void> {
  agent.health = 'stopped';
  agent.on('startContainer', () => {
    agent.health = 'healthy';
  });
  await supervisor.containerEnded();
}
