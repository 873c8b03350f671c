import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { poll } from '../../dev/poll.js';
import { HANGS_MS } from '../support/until.js';
import { realServer } from './support/real-server.js';
import { dies, watched } from './support/watched-agent.js';
import { SETTINGS, WorkflowLab, type Supervised } from './support/workflow-lab.js';

// A real server: the time-skipping server does not suggest to continue as new.
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
});
afterEach(async () => {
  lab.settings = SETTINGS;
  await lab.endSupervisors();
});
afterAll(() => lab?.close());

describe('a supervisor that continues as new', () => {
  const CALLS = 1_000;

  /** Requests checks until the run continues as new; returns the number of its events. */
  async function intoNewRun(supervisor: Supervised): Promise<number> {
    const first = supervisor.firstRunId;
    for (let call = 0; call < CALLS; call++) {
      // One at a time: a run does not end while signals arrive.
      await supervisor.checkNow();
      const isHeard = async () => {
        const { raw } = await supervisor.handle.describe();
        return raw.pendingWorkflowTask ? undefined : true;
      };
      expect(await poll(isHeard, { timeoutMs: HANGS_MS, everyMs: 5 })).toBe(true);
      if ((await supervisor.runId()) !== first) {
        const { workflow } = lab.environment.client;
        const ended = await workflow.getHandle(supervisor.handle.workflowId, first).describe();
        return ended.historyLength;
      }
    }
    throw new Error(`the run did not continue as new: ${await supervisor.historyLength()} events`);
  }

  test.each(['running', 'degraded', 'crash_loop', 'starting'] as const)(
    'a supervisor that continues as new from %s keeps state and crashes, with under 1,000 events a run',
    async (state) => {
      const agent = lab.agent();
      if (state === 'degraded') lab.settings = { ...lab.settings, autoRepair: false };
      agent.health =
        state === 'running' ? 'healthy' : state === 'starting' ? 'starting' : 'unhealthy';
      const at = Date.now();
      const supervisor = await watched(lab, agent, { state, crashes: [at - 2_000, at - 1_000] });
      expect(await intoNewRun(supervisor)).toBeLessThan(1_000);
      expect(agent.transitions).toEqual([]);

      if (state === 'crash_loop') {
        agent.health = 'healthy';
        await supervisor.request('start', 'start');
        expect(await agent.end('start')).toBe('succeeded');
        await agent.went('starting (operation)', 'running (healthy)');
        return;
      }
      await dies(agent, supervisor);
      await agent.went('degraded (exit)', 'crash_loop (exit)');
    },
  );
});
