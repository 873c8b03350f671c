import { randomUUID } from 'node:crypto';
import { isGrpcServiceError } from '@temporalio/client';
import proto from '@temporalio/proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Supervisors } from '../../temporal/supervisors.js';
import { poll } from '../../dev/poll.js';
import type { RequestedKind } from '../../src/types/operation-kinds.js';
import { superviseAgentId } from '../../workflows/ids.js';
import type { FakeAgent } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { refuse } from './support/misbehaviours.js';
import { realServer } from './support/real-server.js';
import { WorkflowLab } from './support/workflow-lab.js';

/** One less than are tried. They make the one operation longer than a run may be. */
const TAKEN_PORTS = 19;
const ASKERS = 4;
/** More of the shortest operations than two runs may hold. */
const MANY = 200;
const STAGE = proto.temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;

// A real server: what becomes of a request to a run that ends is decided there.
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
});
afterAll(() => lab?.close());

/** Asks as the API does. */
async function request(
  agent: FakeAgent,
  kind: RequestedKind,
  operationId: string,
): Promise<string> {
  const supervisors = new Supervisors(lab.environment.client, undefined);
  const asked = { ...agent.ref, name: 'agent', desired: 'running', provisioned: true } as const;
  return (await supervisors.request(asked, kind, operationId)).operationId;
}

/** Waits until the server has the request, delivered or not. */
async function hasRequest(agent: FakeAgent, updateId: string): Promise<void> {
  const { client, namespace } = lab.environment;
  const known = async () => {
    try {
      await client.workflowService.pollWorkflowExecutionUpdate({
        namespace: namespace ?? 'default',
        updateRef: {
          workflowExecution: { workflowId: superviseAgentId(agent.ref.agentId) },
          updateId,
        },
        waitPolicy: {
          lifecycleStage: STAGE.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED,
        },
      });
      return true;
    } catch (error) {
      if (isGrpcServiceError(error)) return undefined; // it has not heard of it
      throw error;
    }
  };
  expect(await poll(known, { timeoutMs: 150_000, everyMs: 5 })).toBe(true);
}

const times = (agent: FakeAgent, step: string): number =>
  agent.containerSteps.filter((taken) => taken === step).length;

describe('an operation asked for while the supervisor goes on in a new run', () => {
  test.each([
    { kind: 'restart', step: 'stopContainer' },
    { kind: 'stop', step: 'stopContainer' },
    { kind: 'delete', step: 'removeVolume' },
  ] as const)('is carried out once: $kind', async ({ kind, step }) => {
    const ending = new Gate();
    const agent = lab.agent().on('finishOperation', ending.pass);
    let taken = 0;
    agent.on('startContainer', () => {
      if (++taken <= TAKEN_PORTS) return refuse('PortTakenError')(1);
    });
    const supervisor = await lab.supervise(agent);
    await supervisor.request('start', 'long');
    await agent.reached('finishOperation');
    const before = await supervisor.runId();

    // The last step of that run is under way: what comes now, the run does not see any more.
    const asked = request(agent, kind, 'next');
    await hasRequest(agent, 'next');
    ending.open();
    expect(await asked).toBe('next');
    expect(await agent.end('next')).toBe('succeeded');
    expect(await supervisor.runId()).not.toBe(before);
    expect(new Set(agent.finished.map(({ id }) => id))).toEqual(new Set(['long', 'next']));
    expect(times(agent, step)).toBe(1);
  });

  test('is carried out once each, however many are asked for', async () => {
    const agent = lab.agent();
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    const runs = new Set([await supervisor.runId()]);
    const answered = new Set<string>();
    const ask = async () => {
      while (runs.size < 3 && answered.size < MANY) {
        answered.add(await request(agent, 'stop', randomUUID()));
      }
    };
    const asking = Promise.all(Array.from({ length: ASKERS }, ask));
    while (runs.size < 3 && answered.size < MANY) runs.add(await supervisor.runId());
    await asking;

    expect(runs.size).toBe(3);
    for (const id of answered) expect(await agent.end(id)).toBe('succeeded');
    expect(new Set(agent.begun)).toEqual(answered);
    expect(times(agent, 'stopContainer')).toBe(answered.size);
  });
});

test('a request for what is under way leaves nothing in the history, however often it comes', async () => {
  const gate = new Gate();
  const agent = lab.agent().on('startContainer', gate.pass);
  const supervisor = await lab.supervise(agent);
  await supervisor.request('restart', 'first');
  await agent.reached('startContainer');
  const before = await supervisor.historyLength();
  for (let time = 0; time < 50; time++) {
    expect(await request(agent, 'restart', `again-${time}`)).toBe('first');
  }
  expect(await supervisor.historyLength()).toBeLessThan(before + 10);
  gate.open();
  expect(await agent.end('first')).toBe('succeeded');
});
