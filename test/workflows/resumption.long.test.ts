import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BRING_UP } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { untilCancelled } from './support/misbehaviours.js';
import { watched } from './support/watched-agent.js';
import { WorkflowLab } from './support/workflow-lab.js';

// A server for each test: the server stops skipping time after a workflow is terminated during a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open({ resumable: true });
});
afterEach(() => lab?.close());

describe('a supervisor whose worker has ended', () => {
  test('a supervisor resumes the operation and repeats only the interrupted step', async () => {
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

  test('a supervisor accepts an operation that was requested while no worker ran', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    await lab.stopWorkers();
    const asked = supervisor.request('stop', 'stop');
    await lab.startWorkers();
    expect(await asked).toBe('stop');
    expect(await agent.end('stop')).toBe('succeeded');
    expect(agent.containerSteps).toEqual(['stopContainer']);
  });

  test('a supervisor resumes the running operation, refuses another kind and joins an equal request', async () => {
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

  test('a supervisor keeps watching a healthy agent and adds nothing to the history', async () => {
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

  test('a supervisor finds at its next check that the agent stopped while no worker ran', async () => {
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
