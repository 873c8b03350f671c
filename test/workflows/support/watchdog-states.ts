import { expect } from 'vitest';
import { BRING_UP, type FakeAgent } from './fake-agent.js';
import type { WorkflowLab } from './workflow-lab.js';

/** Steps of one repair attempt: they create and start the container without waiting for it. */
export const ATTEMPT = ['killGateway', ...BRING_UP.filter((step) => step !== 'awaitReady')];

/** Skips time until the watchdog has recorded these states in this order. */
export async function goesTo(
  lab: WorkflowLab,
  agent: FakeAgent,
  states: readonly string[],
): Promise<void> {
  for (let minute = 0; minute < 10; minute++) {
    await lab.pass('1 minute');
    if (agent.states.slice(-states.length).join() === states.join()) return;
  }
  expect(agent.states).toEqual(states);
}

/** Skips time until the operation has ended and returns its status. */
export async function statusAtEnd(
  lab: WorkflowLab,
  agent: FakeAgent,
  id: string,
): Promise<string | undefined> {
  for (let minute = 0; minute < 10; minute++) {
    if (agent.finished.some((operation) => operation.id === id)) break;
    await lab.pass('1 minute');
  }
  return agent.finished.find((operation) => operation.id === id)?.status;
}
