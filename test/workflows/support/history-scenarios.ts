import type { RequestedKind } from '../../../src/types/operation-kinds.js';
import type { FakeAgent } from './fake-agent.js';
import { refuse, untilCancelled } from './misbehaviours.js';
import { provisioningOf, type Supervised, type WorkflowLab } from './workflow-lab.js';

/** Plays a part of an agent's life to its end. */
type Scenario = (lab: WorkflowLab, agent: FakeAgent) => Promise<void>;

/** Scenarios that together cover every path that leaves different events in a history. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'whole-life': async (lab, agent) => {
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await finished(agent, 'provision', 'succeeded');
    await agent.reached('watchHealth');
    await supervisor.checkNow();
    await agent.reached('observeAgent');
    for (const kind of ['stop', 'start', 'configure', 'restart', 'stop', 'configure'] as const) {
      const id = `${kind}-${agent.finished.length}`;
      await supervisor.request(kind, id);
      await finished(agent, id, 'succeeded');
    }
    await supervisor.request('restart', 'restart');
    await finished(agent, 'restart', 'succeeded');
    await deleted(supervisor, agent);
  },

  'failed-provisioning': async (lab, agent) => {
    agent.on('awaitReady', refuse('AgentNotReadyError')).on('removeNetwork', refuse());
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await finished(agent, 'provision', 'failed');
    agent.behave('removeNetwork');
    await deleted(supervisor, agent);
  },

  'port-taken': async (lab, agent) => {
    agent.on('startContainer', () => {
      if (agent.steps.filter((step) => step === 'startContainer').length <= 2) {
        return refuse('PortTakenError')(1);
      }
    });
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await finished(agent, 'provision', 'succeeded');
    await deleted(supervisor, agent);
  },

  'deletion-while-provisioning': async (lab, agent) => {
    agent.on('createContainer', untilCancelled);
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await agent.reached('createContainer');
    await deleted(supervisor, agent);
    await finished(agent, 'provision', 'cancelled');
  },

  clone: async (lab, agent) => {
    agent.isClone = true;
    const supervisor = await lab.supervise(agent, provisioningOf('provision'));
    await finished(agent, 'provision', 'succeeded');
    await deleted(supervisor, agent);
  },

  'deletion-while-restarting': during('restart', 'stopContainer'),
  'deletion-while-configuring': during('configure', 'awaitReady'),

  'update-rolled-back': async (lab, agent) => {
    const supervisor = await lab.supervise(agent);
    agent.on('awaitReady', () => {
      if (agent.steps.filter((step) => step === 'awaitReady').length === 1) return refuse()(1);
    });
    await supervisor.request('update', 'update');
    await finished(agent, 'update', 'failed');
    await deleted(supervisor, agent);
  },

  'memory-reset': async (lab, agent) => {
    const supervisor = await lab.supervise(agent);
    await supervisor.request('reset-memory', 'reset');
    await finished(agent, 'reset', 'succeeded');
    await deleted(supervisor, agent);
  },

  'container-ended': async (lab, agent) => {
    const supervisor = await lab.supervise(agent);
    await agent.reached('watchHealth');
    agent.health = 'stopped';
    agent.on('startContainer', () => {
      agent.health = 'healthy';
    });
    await supervisor.containerEnded();
    // The server is real: the pause and the grace period of a repair take real time.
    await agent.until('it is repaired', () => agent.states.includes('running (repaired)'));

    agent.health = 'stopped';
    await supervisor.dockerReturned();
    await agent.went('starting (host_returned)', 'running (healthy)');
    agent.on('killGateway', untilCancelled);
    agent.health = 'unhealthy';
    await supervisor.checkNow();
    await agent.reached('killGateway', 2);
    await deleted(supervisor, agent);
  },
};

/** Returns a scenario of a deletion that takes over from an operation during a step. */
function during(
  kind: Exclude<RequestedKind, 'delete'>,
  step: 'stopContainer' | 'awaitReady',
): Scenario {
  return async (lab, agent) => {
    agent.on(step, untilCancelled);
    const supervisor = await lab.supervise(agent);
    await supervisor.request(kind, kind);
    await agent.reached(step);
    await deleted(supervisor, agent);
    await finished(agent, kind, 'cancelled');
  };
}

async function deleted(supervisor: Supervised, agent: FakeAgent): Promise<void> {
  await supervisor.request('delete', 'delete');
  await finished(agent, 'delete', 'succeeded');
  await supervisor.ended();
}

/** Throws unless the operation ended with this status: a wrong history must not be stored. */
async function finished(agent: FakeAgent, id: string, status: string): Promise<void> {
  const ended = await agent.end(id);
  if (ended !== status)
    throw new Error(`operation ${id} has status ${ended ?? 'pending'}, expected ${status}`);
}
