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
import { HANGS_MS } from '../support/until.js';

/** Ports in use, one less than are tried: they make the operation too long for one run. */
const TAKEN_PORTS = 19;
const ASKERS = 4;
/** Number of the shortest operations that exceeds two runs. */
const MANY = 200;
const STAGE = proto.temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;

// Uses a real server, which decides how a request to an ending run is handled.
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
});
afterAll(() => lab?.close());

/** Requests an operation as the API does. */
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
      if (isGrpcServiceError(error)) return undefined; // not received yet
      throw error;
    }
  };
  expect(await poll(known, { timeoutMs: HANGS_MS, everyMs: 5 })).toBe(true);
}

const times = (agent: FakeAgent, step: string): number =>
  agent.containerSteps.filter((taken) => taken === step).length;

describe('operation requested while the supervisor continues as new', () => {
  test.each([
    { kind: 'restart', step: 'stopContainer' },
    { kind: 'stop', step: 'stopContainer' },
    { kind: 'delete', step: 'removeVolume' },
  ] as const)('executes the operation once: $kind', async ({ kind, step }) => {
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

    // The last step of the run is in progress: this run does not receive a new request.
    const asked = request(agent, kind, 'next');
    await hasRequest(agent, 'next');
    ending.open();
    expect(await asked).toBe('next');
    expect(await agent.end('next')).toBe('succeeded');
    expect(await supervisor.runId()).not.toBe(before);
    expect(new Set(agent.finished.map(({ id }) => id))).toEqual(new Set(['long', 'next']));
    expect(times(agent, step)).toBe(1);
  });

  test('executes each of many concurrent requests once', async () => {
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

test('repeated requests for an operation in progress add nothing to the history', async () => {
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
