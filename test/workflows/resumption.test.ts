import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BRING_UP } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { untilCancelled } from './support/misbehaviours.js';
import { watched } from './support/watched-agent.js';
import { WorkflowLab } from './support/workflow-lab.js';

// A server for each test: it stops skipping time once a workflow was ended in the middle of a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open({ resumable: true });
});
afterEach(() => lab?.close());

describe('a supervisor whose worker has ended', () => {
  test('goes on with the operation, and repeats only the step that was cut off', async () => {
    const agent = lab.agent().on('startContainer', untilCancelled);
    const supervisor = await watched(lab, agent);
    await supervisor.request('restart', 'restart');
    await agent.reached('startContainer');

    await lab.stopWorkers();
    agent.behave('startContainer');
    await lab.startWorkers();
    expect(await agent.end('restart')).toBe('succeeded');
    expect(agent.begun).toEqual(['restart']);
    expect(agent.containerSteps).toEqual(['stopContainer', ...BRING_UP]);
    expect(agent.steps.filter((step) => step.startsWith('startContainer'))).toEqual([
      'startContainer',
      'startContainer#2',
    ]);
    await supervisor.inPhase('running');
  });

  test('takes an operation that was asked for while no worker ran', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    await lab.stopWorkers();
    const asked = supervisor.request('stop', 'stop');
    await lab.startWorkers();
    expect(await asked).toBe('stop');
    expect(await agent.end('stop')).toBe('succeeded');
    expect(agent.containerSteps).toEqual(['stopContainer']);
  });

  test('keeps to the operation under way: another one is refused, the same one joins', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('awaitReady', untilCancelled);
    const supervisor = await watched(lab, agent);
    await supervisor.request('start', 'first');
    await agent.reached('awaitReady');

    await lab.stopWorkers();
    agent.on('awaitReady', gate.pass);
    await lab.startWorkers();
    expect(await supervisor.request('start', 'second')).toBe('first');
    await expect(supervisor.request('stop', 'third')).rejects.toThrow();
    gate.open();
    expect(await agent.end('first')).toBe('succeeded');
    expect(agent.begun).toEqual(['first']);
  });

  test('watches a healthy agent on, and says nothing about it', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    await lab.pass('10 minutes');
    const before = await supervisor.historyLength();
    await lab.stopWorkers();
    await lab.startWorkers();

    const { checks } = agent;
    await lab.pass('10 minutes');
    expect(agent.checks).toBeGreaterThan(checks);
    expect(await supervisor.historyLength()).toBe(before);
    expect(agent.transitions).toEqual([]);
    expect(agent.containerSteps).toEqual([]);
  });

  test('finds at its next check what has become of the agent meanwhile', async () => {
    const agent = lab.agent().on('startContainer', () => {
      agent.health = 'healthy';
    });
    const supervisor = await watched(lab, agent);
    await lab.pass('10 minutes');
    await lab.stopWorkers();
    agent.health = 'stopped';
    await lab.startWorkers();

    await lab.pass('5 minutes');
    await agent.reached('startContainer');
    await supervisor.inPhase('running');
    expect(agent.containerSteps.filter((step) => step === 'startContainer')).toHaveLength(1);
  });
});
