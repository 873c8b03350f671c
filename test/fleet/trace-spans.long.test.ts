import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Client, Connection } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Span, Trace } from '../../src/fleet/traces.js';
import { spansOf } from '../../temporal/history-spans.js';
import { MAX_EVENTS, TemporalTraceHistories } from '../../temporal/trace-histories.js';
import { runSwarmId, superviseAgentId } from '../../workflows/ids.js';
import { until } from '../support/until.js';
import { stumble } from '../workflows/support/misbehaviours.js';
import { historyFromText } from '../workflows/support/kept-history.js';
import { realServer } from '../workflows/support/real-server.js';
import { SwarmRun } from '../workflows/support/swarm-run.js';
import { taskRun } from '../workflows/support/task-run.js';
import { bundleWorkflows, provisioningOf, WorkflowLab } from '../workflows/support/workflow-lab.js';

const UI = 'http://temporal-ui.test';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
let histories: TemporalTraceHistories;

beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
  bundle = await bundleWorkflows();
  histories = new TemporalTraceHistories(lab.environment.client, UI);
});
afterAll(async () => {
  await lab?.endSupervisors();
  await lab?.close();
});

const traceOf = (more: Partial<Trace> & Pick<Trace, 'kind' | 'id'>): Trace => ({
  ...{ name: 'a trace', agentId: null, status: 'running', startedAt: new Date() },
  ...{ finishedAt: null, error: null, runId: null },
  ...more,
});
type Named = Omit<Span, 'parentId'>;
const namesOf = (spans: readonly Named[]) => spans.map(({ name }) => name);
const spanOf = <S extends Named>(spans: readonly S[], name: string): S => {
  const span = spans.find((each) => each.name === name);
  if (!span) throw new Error(`${name} is not among ${namesOf(spans).join(', ')}`);
  return span;
};

describe('an operation', () => {
  /** Requests operations one after the other, and returns the trace of each. */
  async function traces(
    kinds: readonly ('restart' | 'stop')[],
    agent = lab.agent(),
  ): Promise<Trace[]> {
    const supervisor = await lab.supervise(agent);
    const made: Trace[] = [];
    for (const kind of kinds) {
      const [id, startedAt] = [randomUUID(), new Date()];
      await supervisor.request(kind, id);
      await agent.end(id);
      const { agentId } = agent.ref;
      const runId = supervisor.firstRunId;
      made.push(
        traceOf({ kind: 'operation', id, agentId, runId, startedAt, finishedAt: new Date() }),
      );
    }
    return made;
  }

  test("an operation's trace has the steps from its beginning to its end, and none of another", async () => {
    const [restart, stop] = await traces(['restart', 'stop']);
    const { retained, run, spans, truncated } = await histories.read(restart as Trace);
    expect([retained, truncated]).toEqual([true, false]);
    expect([namesOf(spans).at(0), namesOf(spans).at(-1)]).toEqual([
      ...['beginOperation', 'finishOperation'],
    ]);
    expect(namesOf(spans)).toEqual(expect.arrayContaining(['stopContainer', 'startContainer']));
    expect(namesOf(spans).some((name) => name.startsWith('watch'))).toBe(false);
    for (const { attempts, error, finishedAt, parentId, startedAt, status } of spans) {
      expect({ attempts, error, parentId, status }).toEqual({
        ...{ attempts: 1, error: null, parentId: null, status: 'succeeded' },
      });
      expect(startedAt <= (finishedAt ?? new Date(0))).toBe(true);
    }
    const workflowId = superviseAgentId(restart?.agentId ?? '');
    expect(run).toEqual({
      ...{ workflowId, runId: restart?.runId },
      url: `${UI}/namespaces/default/workflows/${workflowId}/${restart?.runId}/history`,
    });
    const after = await histories.read(stop as Trace);
    expect(namesOf(after.spans)).toEqual(['beginOperation', 'stopContainer', 'finishOperation']);
  });

  test("an operation's trace has attempts, and the reason of a failure", async () => {
    const agent = lab.agent().on('stopContainer', stumble(2));
    agent.on('startContainer', () => {
      // The message of a library is only for operators.
      const cause = new Error('connect ECONNREFUSED 10.1.2.3:5432');
      throw ApplicationFailure.create({ message: 'Not started', nonRetryable: true, cause });
    });
    const [restart] = await traces(['restart'], agent);
    const { spans } = await histories.read(restart as Trace);
    expect(spanOf(spans, 'stopContainer')).toMatchObject({ attempts: 3, status: 'succeeded' });
    const started = spanOf(spans, 'startContainer');
    expect(started).toMatchObject({ status: 'failed', error: 'Not started' });
    expect(spanOf(spans, 'finishOperation').status).toBe('succeeded');
  });

  test("an operation's trace has the steps of its child workflow below the child", async () => {
    const [agent, id] = [lab.agent(), randomUUID()];
    const { firstRunId } = await lab.supervise(agent, provisioningOf(id));
    await agent.end(id);
    const { agentId } = agent.ref;
    const { spans } = await histories.read(
      traceOf({ kind: 'operation', id, agentId, runId: firstRunId, finishedAt: new Date() }),
    );
    const child = spanOf(spans, 'provisionAgent');
    expect(child).toMatchObject({ parentId: null, status: 'succeeded' });
    const below = spans.filter(({ parentId }) => parentId === child.id);
    expect(namesOf(below)).toEqual(expect.arrayContaining(['reservePort', 'createContainer']));
    expect(below.every((span) => span.id.startsWith(`${child.id}.`))).toBe(true);
    expect(new Set(spans.map((span) => span.id)).size).toBe(spans.length);
  });

  test("an operation's trace has no steps before its beginning, and is retained", async () => {
    const { agentId } = lab.agent().ref;
    const trace = traceOf({ kind: 'operation', id: randomUUID(), agentId });
    const run = { workflowId: superviseAgentId(agentId), runId: null, url: null };
    expect(await histories.read(trace)).toEqual({
      ...{ spans: [], retained: true, truncated: false, run },
    });
  });
});

test('a swarm shows the attempts and last failure of a turn in progress', async () => {
  const swarm = new SwarmRun({ strategy: 'sequential', members: 2 });
  let isFree = false;
  swarm.ask = ({ id }) => {
    if (id === '1/1' && !isFree) throw ApplicationFailure.retryable('The gateway failed');
    return Promise.resolve('answered');
  };
  const running = swarm.run(lab.environment, bundle);
  const trace = traceOf({ kind: 'swarm', id: swarm.id });
  const turns = async () => {
    const { spans } = await histories.read(trace);
    return spans.filter(({ name }) => name === 'askSwarmAgent');
  };
  const [first, second] = await until(async () => {
    const found = await turns();
    return (found[1]?.attempts ?? 0) > 1 && found;
  });
  expect([first?.status, second?.status, second?.error, second?.finishedAt]).toEqual([
    ...['succeeded', 'running', 'The gateway failed', null],
  ]);
  isFree = true;
  await running;
  expect((await turns()).map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
});

test('a run of a task has its turn, and no payload', { tags: 'attack' }, async () => {
  const secret = randomUUID();
  const agent = { agentId: 'agent', userId: 'user', host: 'task-host' };
  const { workflowId } = await taskRun(
    lab.environment,
    bundle,
    {
      records: {
        beginTaskRun: ({ id }) => Promise.resolve({ id, agent, secret } as never),
        endLostTaskRun: () => Promise.resolve('failed'),
      },
      host: { askForTask: () => Promise.resolve(secret as never) },
    },
    { taskId: randomUUID() },
  );
  const history = await histories.read(
    traceOf({ kind: 'task', id: workflowId, finishedAt: new Date() }),
  );
  expect(namesOf(history.spans)).toEqual(['beginTaskRun', 'askForTask']);
  expect(JSON.stringify(history)).not.toContain(secret);
});

test('a history that is no longer stored has no steps', async () => {
  const id = randomUUID();
  const read = (finishedAt: Date | null) =>
    histories.read(traceOf({ kind: 'swarm', id, finishedAt }));
  expect(await read(new Date())).toMatchObject({ spans: [], retained: false });
  // The run of a new row starts a moment later.
  expect(await read(null)).toMatchObject({ spans: [], retained: true });
});

test('a long history is cut after 2,000 events', async () => {
  const { workflow } = lab.environment.client;
  const id = randomUUID();
  const handle = await workflow.start('runSwarm', {
    ...{ workflowId: runSwarmId(id), taskQueue: `nobody-${id}`, args: [id] },
  });
  for (let sent = 0; sent < MAX_EVENTS; sent += 200) {
    await Promise.all(Array.from({ length: 200 }, () => handle.signal('unknown')));
  }
  expect(await histories.read(traceOf({ kind: 'swarm', id }))).toMatchObject({
    ...{ spans: [], retained: true, truncated: true },
  });
  await handle.terminate();
});

test('is unavailable while Temporal cannot be reached', async () => {
  const connection = Connection.lazy({ address: '127.0.0.1:1' });
  const away = new TemporalTraceHistories(new Client({ connection }), UI);
  await expect(away.read(traceOf({ kind: 'swarm', id: 'a' }))).rejects.toMatchObject({
    status: 503,
  });
});

describe('recorded histories', () => {
  const recorded = async (name: string) => {
    const file = new URL(`../workflows/histories/${name}.json`, import.meta.url);
    const { events } = historyFromText(await readFile(file, 'utf8'));
    return spansOf(events ?? [], { closedAt: null, pending: [] });
  };

  test('recorded histories show the timers of a repair', async () => {
    const spans = await recorded('2026-11-26T22-repair-agent-container-ended');
    const [pause] = spans.filter(({ name }) => name === 'timer');
    const { finishedAt, startedAt, status } = pause ?? {};
    expect([status, Math.round(Number(finishedAt) - Number(startedAt)) >= 5_000]).toEqual([
      ...['succeeded', true],
    ]);
  });

  test('recorded histories show steps that were cancelled', async () => {
    const spans = await recorded('2026-11-26T22-supervise-agent-deletion-while-restarting');
    expect(spans.some(({ status }) => status === 'cancelled')).toBe(true);
    expect(namesOf(spans)).toEqual(expect.arrayContaining(['removeContainer', 'removeVolume']));
  });

  test('recorded histories show a failed child workflow with the reason', async () => {
    const spans = await recorded('2026-11-26T22-supervise-agent-failed-provisioning');
    expect(spanOf(spans, 'provisionAgent')).toMatchObject({ status: 'failed' });
    expect(spanOf(spans, 'provisionAgent').error).not.toBe('');
  });
});
