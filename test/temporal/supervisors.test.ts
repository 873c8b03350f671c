import { WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Supervisors } from '../../temporal/supervisors.js';
import { WorkflowLab } from '../workflows/support/workflow-lab.js';

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => lab?.close());

const agent = {
  ...{ agentId: 'agent', userId: 'user', host: 'local', name: 'Ada' },
  ...({ desired: 'running', provisioned: true } as const),
};

/** The server's answer to an Update of a type. */
const rejection = (type: string) =>
  new WorkflowUpdateFailedError(
    'Workflow Update failed',
    ApplicationFailure.nonRetryable('the Update was rejected', type),
  );

/** Makes the server reject this many Updates and then accept one, and returns the calls. */
function rejected(times: number, type: string) {
  const update = {
    updateId: 'operation',
    workflowId: 'supervisor',
    workflowRunId: 'run',
    result: () => Promise.resolve({ operationId: 'operation' }),
  };
  const calls = vi.spyOn(lab.environment.client.workflow, 'startUpdateWithStart');
  for (let n = 0; n < times; n += 1) calls.mockRejectedValueOnce(rejection(type));
  return calls.mockResolvedValue(update);
}

const request = () =>
  new Supervisors(lab.environment.client, undefined).request(agent, 'start', 'operation');

test('a request whose Updates were left unanswered is repeated under the same id', async () => {
  const calls = rejected(2, 'UnprocessedUpdate');
  expect(await request()).toEqual({ operationId: 'operation', run: undefined });
  expect(calls.mock.calls.map(([, { updateId }]) => updateId)).toEqual(
    Array.from({ length: 3 }, () => 'operation'),
  );
});

test('a request fails after three Updates without an answer', async () => {
  const calls = rejected(3, 'UnprocessedUpdate');
  await expect(request()).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
  expect(calls).toHaveBeenCalledTimes(3);
});

test('a request that the supervisor refuses is not repeated', async () => {
  const calls = rejected(1, 'AnotherRefusal');
  await expect(request()).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
  expect(calls).toHaveBeenCalledTimes(1);
});
