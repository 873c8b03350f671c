import { CancelledFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROVISIONING_FAILED } from '../../workflows/provision-agent.js';
import type { Step } from './support/fake-agent.js';
import { failWhenCancelled, refuse, stumble, untilCancelled } from './support/misbehaviours.js';
import {
  CONTAINER_STEPS,
  UNDO_ALL,
  UNDO_PORT,
  failureOf,
  undone,
} from './support/provisionings.js';
import { realServer } from './support/real-server.js';
import { WorkflowLab } from './support/workflow-lab.js';

// Uses a real server: the time-skipping server hangs when a run is cancelled in the middle of a step.
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
});
afterAll(() => lab?.close());

describe('cancelled provisioning', () => {
  const steps: readonly Step[] = [...CONTAINER_STEPS, 'reservePort', 'recordRunning'];

  test.each(steps)(
    'a cancellation during %s rolls back the steps begun and ends as cancelled',
    async (step) => {
      const agent = lab.agent().on(step, untilCancelled);
      const provisioning = await lab.provision(agent);
      await agent.reached(step);
      await provisioning.cancel();

      expect(await failureOf(provisioning)).toBeInstanceOf(CancelledFailure);
      expect(undone(agent)).toEqual(step === 'reservePort' ? UNDO_PORT : UNDO_ALL);
    },
  );

  test.each(CONTAINER_STEPS)('ends as cancelled even if %s fails on cancellation', async (step) => {
    const agent = lab.agent().on(step, failWhenCancelled);
    const provisioning = await lab.provision(agent);
    await agent.reached(step);
    await provisioning.cancel();

    expect(await failureOf(provisioning)).toBeInstanceOf(CancelledFailure);
    expect(undone(agent)).toEqual(UNDO_ALL);
  });

  test('a cancellation does not interrupt a rollback', async () => {
    let cancelled = false;
    const agent = lab.agent().on('startContainer', refuse());
    agent.on('removeNetwork', () => {
      if (!cancelled) return stumble()(1);
    });
    const provisioning = await lab.provision(agent);
    await agent.reached('removeNetwork');
    await provisioning.cancel();
    cancelled = true;

    const failure = await failureOf(provisioning);
    expect(failure).toMatchObject({ type: PROVISIONING_FAILED, details: [{ leftOver: [] }] });
    expect(undone(agent)).toEqual(UNDO_ALL);
  });
});
