import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BRING_UP, type FakeAgent } from './support/fake-agent.js';
import { Gate } from './support/gate.js';
import { dies, watched } from './support/watched-agent.js';
import { ATTEMPT, goesTo, statusAtEnd } from './support/watchdog-states.js';
import { WorkflowLab } from './support/workflow-lab.js';

// A server for each test: the server stops skipping time after a workflow is terminated during a step.
let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open();
});
afterEach(() => lab?.close());

const goes = (agent: FakeAgent, ...states: string[]) => goesTo(lab, agent, states);
const ends = (agent: FakeAgent, id: string) => statusAtEnd(lab, agent, id);
const now = () => lab.environment.currentTimeMs();

describe('an agent that starts', () => {
  test.each([3, 5])(
    'a start fails after %i failed checks, which count as one crash',
    async (threshold) => {
      lab.settings = { ...lab.settings, startupFailureThreshold: threshold };
      const agent = lab.agent().on('killGateway', () => {
        agent.health = 'healthy';
      });
      agent.health = 'unhealthy';
      let checks = 0;
      agent.on('recordTransition', () => {
        checks ||= agent.checks;
      });
      await watched(lab, agent, { state: 'starting' });
      await goes(agent, 'degraded (start_failed)', 'repairing (unhealthy)', 'running (repaired)');
      expect(checks).toBe(threshold);
      expect(agent.memory?.crashes).toHaveLength(1);
    },
  );

  test('a starting agent that fails two checks and passes the third has not crashed', async () => {
    const agent = lab.agent();
    agent.health = 'unhealthy';
    agent.on('watchHealth', () => {
      if (agent.checks === 2) agent.health = 'healthy';
    });
    await watched(lab, agent, { state: 'starting' });
    await goes(agent, 'running (healthy)');
    expect(agent.memory?.crashes).toEqual([]);
  });
});

describe('a container that ended', () => {
  test('an end counts as out of memory if the container states that, regardless of the reported event', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.death = 'oom';
    await dies(agent, supervisor);
    await goes(agent, 'degraded (oom)', 'repairing (oom)', 'running (repaired)');
  });

  test('an end that was not reported is found by the next check', async () => {
    const agent = lab.agent();
    await watched(lab, agent);
    agent.death = 'gone';
    agent.health = 'stopped';
    agent.on('startContainer', () => {
      agent.health = 'healthy';
    });
    await lab.pass('3 minutes');
    await goes(agent, 'degraded (gone)', 'repairing (gone)', 'running (repaired)');
  });

  test('a container that runs again at the check has not crashed', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    await supervisor.containerEnded();
    await agent.reached('observeAgent');
    await agent.reached('watchHealth', 2);
    expect(agent.transitions).toEqual([]);
  });

  test('a container that was started externally is starting', async () => {
    const agent = lab.agent();
    const supervisor = await watched(lab, agent);
    agent.health = 'starting';
    await supervisor.containerEnded({ cause: 'stop' });
    await agent.went('starting (stop)');
    agent.health = 'healthy';
    await lab.pass('3 minutes');
    await goes(agent, 'running (healthy)');
    expect(agent.containerSteps).toEqual([]);
  });

  test('a container that an operation stopped has not crashed', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('stopContainer', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('restart', 'restart');
    await agent.reached('stopContainer');
    await supervisor.containerEnded({ cause: 'stop' });
    gate.open();

    expect(await agent.end('restart')).toBe('succeeded');
    await agent.reached('observeAgent');
    expect(agent.states).toEqual(['starting (operation)', 'running (healthy)']);
    expect(agent.containerSteps).toEqual(['stopContainer', ...BRING_UP]);
  });

  test('a container that ended during a stop stays stopped', async () => {
    const gate = new Gate();
    const agent = lab.agent().on('stopContainer', gate.pass);
    const supervisor = await watched(lab, agent);
    await supervisor.request('stop', 'stop');
    await agent.reached('stopContainer');
    agent.health = 'stopped';
    await supervisor.containerEnded({ cause: 'stop' });
    gate.open();

    expect(await agent.end('stop')).toBe('succeeded');
    await lab.pass('10 minutes');
    expect(agent.containerSteps).toEqual(['stopContainer']);
    expect(agent.states).toEqual(['stopped (operation)']);
  });
});

describe('a crash loop', () => {
  test('crashes before the window do not make a crash loop', async () => {
    const agent = lab.agent();
    const at = await now();
    const supervisor = await watched(lab, agent, { crashes: [at - 301_000, at - 300_001] });
    await dies(agent, supervisor);
    await goes(agent, 'degraded (exit)', 'repairing (exit)', 'running (repaired)');
    expect(agent.memory?.crashes).toHaveLength(1);
  });

  test.each([
    ['start', ['stopContainer', ...BRING_UP]],
    ['restart', ['stopContainer', ...BRING_UP]],
    ['repair', ATTEMPT],
  ] as const)('a %s ends a crash loop and clears the window', async (kind, steps) => {
    const agent = lab.agent();
    const at = await now();
    const supervisor = await watched(lab, agent, { state: 'crash_loop', crashes: [at, at, at] });
    await supervisor.request(kind, 'op');

    expect(await ends(agent, 'op')).toBe('succeeded');
    await goes(agent, kind === 'repair' ? 'running (repaired)' : 'running (healthy)');
    expect(agent.containerSteps).toEqual(steps);
    expect(agent.memory?.crashes).toEqual([]);
    await agent.reached('watchHealth');
  });

  test('a withdrawn start changes nothing in a crash loop', async () => {
    const agent = lab.agent();
    agent.beginnings.set('start', 'withdrawn');
    const at = await now();
    const supervisor = await watched(lab, agent, { state: 'crash_loop', crashes: [at, at, at] });
    agent.health = 'stopped';
    await supervisor.request('start', 'start');
    await agent.reached('beginOperation');
    await lab.pass('10 minutes');
    expect(agent.steps).toEqual(['beginOperation']);

    await supervisor.request('configure', 'op');
    expect(await ends(agent, 'op')).toBe('succeeded');
    expect(agent.transitions[0]).toMatchObject({
      from: 'crash_loop',
      memory: { crashes: [at, at, at] },
    });
  });

  test('a requested repair that fails ends in a crash loop', async () => {
    const agent = lab.agent();
    agent.health = 'unhealthy';
    const supervisor = await watched(lab, agent, { state: 'crash_loop' });
    await supervisor.request('repair', 'op');
    expect(await ends(agent, 'op')).toBe('failed');
    expect(agent.finished[0]?.error).toBe('It is unhealthy');
    await goes(agent, 'repairing (operation)', 'crash_loop (repair_failed)');
  });
});
