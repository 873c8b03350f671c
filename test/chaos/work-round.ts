import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import { taskScheduleId } from '../../src/agents/tasks/task-ids.js';
import { containerName } from '../../src/docker/containers/container-spec.js';
import { runSwarmId, verifyAgentId } from '../../workflows/ids.js';
import { runInContainer } from '../support/run-in-container.js';
import { requestEmails } from './email-work.js';
import { killProcess } from './kills.js';
import { pauseProcess } from './pauses.js';
import { requestRadio } from './radio-work.js';
import { requestVideo } from './video-work.js';
import type { WorkKind, WorkPart, WorkPlan } from './work-plan.js';
import { type RequestWork, stillRuns, type Work, type WorkSite } from './work.js';

/** Milliseconds until all work has ended: a lost turn ends after its heartbeat timeout. */
const SETTLE_MS = 150_000;

/** Milliseconds in which an agent answers, so that a kill can hit its turn. */
const ANSWER_DELAY_MS = 700;

/** Milliseconds for which a part hangs. */
const HANG_MS = 5_000;

/** Milliseconds from the request for a task to its time. */
const TASK_AFTER_MS = 4_000;

/** Maximum number of attempts to create a task before its time has passed. */
const MAX_ATTEMPTS = 10;

const SKILL = 'decision-log';

export interface WorkResult {
  readonly plan: WorkPlan;
  /** The state in which the work ended. */
  readonly ended: string;
  /** Problems found; empty if all is well. */
  readonly problems: readonly string[];
}

/** Requests work, kills a part during the work, and waits for the end. */
export async function runWork(site: WorkSite, plan: WorkPlan): Promise<WorkResult> {
  try {
    for (const agentId of site.agents) await order(site, agentId);
    const [work] = await Promise.all([
      requestOf[plan.kind](site, `chaos-work-${plan.seed}`, plan),
      delay(plan.killAfterMs).then(() => hit(site, plan.part)),
    ]);
    const ended = await untilEnded(work);
    const problems = await untilWell(site, work);
    await work.remove?.();
    return { plan, ended, problems };
  } catch (error) {
    return { plan, ended: 'unknown', problems: [String(error)] };
  }
}

const requestOf: Readonly<Record<WorkKind, RequestWork>> = {
  task: requestTask,
  swarm: requestSwarm,
  skill: requestSkill,
  verification: requestVerification,
  video: requestVideo,
  email: requestEmails,
  radio: requestRadio,
};

async function hit({ livingPidOf }: WorkSite, part: WorkPart): Promise<void> {
  if (part !== 'hung api') return killProcess(part, () => livingPidOf(part));
  await pauseProcess('api', () => livingPidOf('api'), HANG_MS);
}

async function untilEnded(work: Work): Promise<string> {
  // A killed part may not answer yet.
  let failure = 'is open';
  const end = async () => {
    try {
      return await work.end();
    } catch (error) {
      failure = String(error);
      return undefined;
    }
  };
  const ended = await poll(end, { timeoutMs: SETTLE_MS, everyMs: 250 });
  if (ended === undefined) throw new Error(`The work did not end: ${failure}`);
  return ended;
}

async function untilWell(site: WorkSite, work: Work): Promise<string[]> {
  let problems: string[] = [];
  const isWell = async () => {
    try {
      problems = [...(await work.problems()), ...(await requestedTwice(site))];
    } catch (error) {
      problems = [`it cannot be seen: ${String(error)}`]; // the killed part is restarting
    }
    return problems.length === 0 || undefined;
  };
  await poll(isWell, { timeoutMs: SETTLE_MS, everyMs: 250 });
  return problems;
}

async function requestTask(site: WorkSite, key: string): Promise<Work> {
  const { database, owner, temporal } = site;
  const id = await createTask(site, key);
  const path = `/api/scheduled-tasks?id=${id}`;
  const read = () =>
    owner.ask<{ task: { status: string }; runs: { status: string }[] }>('GET', path, '');
  return {
    async end() {
      const { runs, task } = await read();
      const isOpen = task.status !== 'finished' || runs.some(({ status }) => status === 'running');
      return isOpen ? undefined : runs.map(({ status }) => status).join();
    },
    async problems() {
      const { runs } = await read();
      return runs.length === 1 ? [] : [`the task has ${runs.length} runs`];
    },
    async remove() {
      await owner.ask('DELETE', path, `${key}-delete`);
      const isGone = async () => {
        const rows = await database
          .asPlatform()
          .query('SELECT FROM scheduled_tasks WHERE id = $id', { id });
        const schedules: string[] = [];
        for await (const { scheduleId } of temporal.schedule.list()) schedules.push(scheduleId);
        return (rows.length === 0 && !schedules.includes(taskScheduleId(id))) || undefined;
      };
      const gone = await poll(isGone, { timeoutMs: SETTLE_MS, everyMs: 500 });
      if (!gone) throw new Error('The removed task has a row or a schedule');
    },
  };
}

/** Creates a task with one time. A creation that was refused because its time had passed is repeated. */
async function createTask({ agents, owner }: WorkSite, key: string): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { task } = await owner.ask<{ task: { id: string } }>(
        'POST',
        '/api/scheduled-tasks',
        `${key}-${attempt}`,
        {
          agentId: agents[0],
          name: key,
          message: `Is the shop open? (${key})`,
          schedule: new Date(Date.now() + TASK_AFTER_MS).toISOString(),
        },
      );
      return task.id;
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function requestSwarm(site: WorkSite, key: string): Promise<Work> {
  const { agents, owner } = site;
  const body = { name: key, task: `Name a colour (${key})`, agentIds: agents };
  const { swarm } = await owner.ask<{ swarm: { id: string } }>('POST', '/api/swarms', key, {
    ...body,
    strategy: 'parallel',
  });
  const read = async () => {
    const path = `/api/swarms?id=${swarm.id}`;
    const found = await owner.ask<{ swarm: { status: string; members: { status: string }[] } }>(
      ...(['GET', path, ''] as const),
    );
    return found.swarm;
  };
  return {
    async end() {
      const { status } = await read();
      return /^(pending|running)$/.test(status) ? undefined : status;
    },
    async problems() {
      const open = (await read()).members.filter(({ status }) => status === 'running');
      return [
        ...(open.length > 0 ? [`${open.length} members of an ended swarm run`] : []),
        ...(await stillRuns(site, runSwarmId(swarm.id))),
      ];
    },
  };
}

async function requestSkill(site: WorkSite, key: string): Promise<Work> {
  const { agents, database, owner } = site;
  const [agentId = ''] = agents;
  const installed = () =>
    database
      .asPlatform()
      .query<{ state: string; content: string | null }>(
        'SELECT state, content FROM agent_skills WHERE agent_id = $agentId',
        { agentId },
      );
  const action = (await installed()).length > 0 ? 'remove' : 'install';
  await owner.ask('POST', `/api/skills/${SKILL}`, key, { agentId, action });
  return {
    async end() {
      const path = `/api/agents/${agentId}/operations`;
      const { operations } = await owner.ask<{ operations: { status: string }[] }>(
        ...(['GET', path, ''] as const),
      );
      const status = operations[0]?.status ?? 'missing';
      return /^(pending|running)$/.test(status) ? undefined : `${action} ${status}`;
    },
    async problems() {
      const rows = await installed();
      const open = rows.filter(({ content, state }) => state !== 'present' || content === null);
      const [written, entries] = await skillsIn(site, agentId);
      const wanted = rows.length > 0 ? [SKILL] : [];
      const differs = [written, entries].some((names) => names.join() !== wanted.join());
      return [
        ...(open.length > 0 ? [`${open.length} changes of skills have not ended`] : []),
        ...(differs
          ? [`installed: ${wanted.join()}; files: ${written.join()}; entries: ${entries.join()}`]
          : []),
      ];
    },
  };
}

/** Returns the names of the skills in the agent's memory and in its configuration. */
async function skillsIn(site: WorkSite, agentId: string): Promise<[string[], string[]]> {
  const [host] = Object.values(site.hosts);
  if (!host) throw new RangeError('There is no host');
  const output = await runInContainer(
    host.docker,
    containerName(agentId),
    `const fs = require('node:fs'); const home = '/home/node/.openclaw';
     const written = fs.existsSync(home + '/skills') ? fs.readdirSync(home + '/skills') : [];
     const { skills } = JSON.parse(fs.readFileSync(home + '/openclaw.json', 'utf8'));
     console.log(JSON.stringify([written, Object.keys(skills?.entries ?? {})]));`,
  );
  return JSON.parse(output) as [string[], string[]]; // printed by the script
}

async function requestVerification(site: WorkSite, key: string): Promise<Work> {
  const { agents, database, owner } = site;
  const [agentId = ''] = agents;
  await owner.ask('POST', `/api/agents/${agentId}/verify`, key);
  const states = async () => {
    const rows = await database
      .asPlatform()
      .query<{ state: string }>(
        'SELECT state FROM agent_verifications WHERE agent_id = $agentId ORDER BY state',
        { agentId },
      );
    return rows.map(({ state }) => state);
  };
  return {
    async end() {
      const open = (await states()).filter((state) => /^(measuring|signing)$/.test(state));
      return open.length > 0 ? undefined : 'measured';
    },
    async problems() {
      const current = (await states()).filter((state) => state === 'current').length;
      return [
        ...(current === 1 ? [] : [`${current} verifications are current`]),
        ...(await stillRuns(site, verifyAgentId(agentId))),
      ];
    },
  };
}

async function requestedTwice(site: WorkSite): Promise<string[]> {
  const answers = await Promise.all(site.agents.map((agentId) => order(site, agentId)));
  return answers.flat().map((message) => `asked twice: ${message}`);
}

/** Makes an agent answer by itself, after a while. @returns the messages that were sent to it twice. */
async function order({ database }: WorkSite, agentId: string): Promise<readonly string[]> {
  const [agent] = await database
    .asPlatform()
    .query<{ port: number }>('SELECT port FROM agents WHERE id = $agentId', { agentId });
  const response = await fetch(`http://127.0.0.1:${agent?.port}/test`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ echo: true, answerDelayMs: ANSWER_DELAY_MS }),
    signal: AbortSignal.timeout(10_000),
  });
  const { askedTwice: found } = (await response.json()) as { askedTwice: string[] };
  return found;
}
