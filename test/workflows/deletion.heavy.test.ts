import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refuse, stumble } from './support/misbehaviours.js';
import { realServer } from './support/real-server.js';
import { WorkflowLab, provisioningOf } from './support/workflow-lab.js';

const REMOVAL = ['removeContainer', 'removeNetwork', 'removeVolume'];

// One server per test: the time-skipping server stops skipping time after a workflow was ended in the
// middle of a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

describe('deletion of an agent', () => {
  test('retries a deletion until Docker is back', async () => {
    const agent = lab.agent().on('removeNetwork', stumble(8));
    const supervisor = await lab.supervise(agent);
    await supervisor.request('delete', 'delete');
    await supervisor.ended();
    expect(agent.steps).toContain('removeNetwork#9');
    expect(await agent.end('delete')).toBe('succeeded');
  });

  test('a refused deletion leaves the agent stopped and can be requested again', async () => {
    const agent = lab.agent().on('removeNetwork', refuse('ForeignContainerError'));
    agent.health = 'stopped';
    const supervisor = await lab.supervise(agent, { desired: 'stopped' });
    await supervisor.request('delete', 'first');
    expect(await agent.end('first')).toBe('failed');
    await supervisor.checkNow();
    await lab.pass('10 minutes');
    expect(agent.steps).not.toContain('startContainer');

    agent.behave('removeNetwork');
    await supervisor.request('delete', 'second');
    expect(await agent.end('second')).toBe('succeeded');
    await supervisor.ended();
  });

  test('a deletion requested before its supervisor has begun cancels the provisioning', async () => {
    // Uses a real server: the cancelled step may be ending at this moment.
    await using real = await WorkflowLab.open({ workers: false, environment: realServer });
    const agent = real.agent();
    const supervisor = await real.supervise(agent, provisioningOf('provision'));
    const request = supervisor.request('delete', 'delete');
    await real.startWorkers();
    await request;

    expect(await agent.end('delete')).toBe('succeeded');
    expect(await agent.end('provision')).toBe('cancelled');
    expect(agent.containerSteps.slice(-3)).toEqual(REMOVAL);
    await supervisor.ended();
  });
});
