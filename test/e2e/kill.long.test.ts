import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lastLines } from '../../dev/processes/process.js';
import { isAlive } from '../../dev/processes/process-identity.js';
import { poll } from '../../dev/poll.js';
import { superviseAgentId } from '../../workflows/ids.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { ContainerWatch } from './container-watch.js';
import { RealPlatform } from './platform.js';
import { Random } from '../support/random.js';

const VICTIMS = ['worker', 'api', 'temporal', 'postgres'] as const;
type Victim = (typeof VICTIMS)[number];

const random = new Random(Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31)));

/** Agents in flight at each kill, so that one kill hits several stages. */
const AGENTS = 3;
/** Approximate duration of a provisioning and of a removal; the kill occurs at any time within it. */
const PROVISIONING_MS = 2_500;
const REMOVAL_MS = 1_500;
/** Milliseconds for the victim to restart and the work to complete. */
const SETTLE_MS = 180_000;
/** Milliseconds after which no further round begins. */
const BUDGET_MS = 40_000;

let platform: RealPlatform;
let watch: ContainerWatch;

beforeAll(async () => {
  const image = await ensureTestImage(connectDocker(process.env.DOCKER_HOST));
  // Loopback is enough because these agents make no AI calls.
  platform = await RealPlatform.make({ AGENT_RUNTIME_IMAGE: image, AGENT_AI_HOST: '127.0.0.1' });
  await platform.start();
  watch = await ContainerWatch.begin(platform.docker, platform.installation);
});

afterAll(async () => {
  watch?.end();
  await platform?.close();
});

/** Number of the test's run, so that a retry does not find the agents of the previous run. */
let attempt = 0;

test('agents end as desired and leave nothing behind, whichever process is killed at any time', async () => {
  console.log(`kills with KILL_SEED=${random.seed}`);
  const begun = performance.now();
  attempt++;
  let rounds = 0;
  try {
    do {
      const later = random.shuffled(VICTIMS);
      for (const [index, victim] of random.shuffled(VICTIMS).entries()) {
        await round(`agent-${attempt}-${++rounds}`, victim, later[index] ?? victim);
        if (rounds >= VICTIMS.length && performance.now() - begun > BUDGET_MS) break;
      }
    } while (performance.now() - begun < BUDGET_MS);
    expect(await platform.remains()).toEqual({ containers: [], networks: [], volumes: [] });
  } catch (error) {
    console.error(platform.output, await evidence());
    throw error;
  }
  console.log(`${rounds} rounds, ${2 * rounds} kills`);
});

/** Creates and then removes some agents, with a kill during each. */
async function round(name: string, whileComing: Victim, whileGoing: Victim): Promise<void> {
  const names = Array.from({ length: AGENTS }, (_, index) => `${name}-${index}`);
  const [ids] = await Promise.all([
    Promise.all(names.map((each) => create(each, random.below(PROVISIONING_MS / 2)))),
    kill(whileComing, random.below(PROVISIONING_MS)),
  ]);
  for (const id of ids) await settled(id);
  await Promise.all([
    Promise.all(ids.map((id) => remove(id, random.below(REMOVAL_MS / 2)))),
    kill(whileGoing, random.below(REMOVAL_MS)),
  ]);
  for (const id of ids) await gone(id);
  expect(watch.doubled).toEqual([]);
}

async function kill(victim: Victim, afterMs: number): Promise<void> {
  await delay(afterMs);
  // The victim may still be restarting after the previous kill.
  const running = await until(`${victim} to run`, async () =>
    (await platform.place.processes()).find(({ name }) => name === victim),
  );
  console.log(`  kill ${victim} after ${afterMs} ms`);
  process.kill(running.pid, 'SIGKILL');
  await until(`${victim} to be gone`, async () => !(await isAlive(running)));
}

async function create(name: string, afterMs: number): Promise<string> {
  await delay(afterMs);
  const answer = await call('POST', '/api/agents', { name });
  return answer.id;
}

async function remove(id: string, afterMs: number): Promise<void> {
  await delay(afterMs);
  await call('DELETE', `/api/agents/${id}`);
}

/** Repeats a request with the same key until it is answered, as a careful client does. */
async function call(method: string, at: string, body?: object): Promise<{ id: string }> {
  const idempotencyKey = `kill-${random.seed}-${JSON.stringify(body)}`;
  return until(`an answer to ${method} ${at}`, async () => {
    try {
      const response = await fetch(`${platform.backendUrl}${at}`, {
        method,
        headers: {
          authorization: `Bearer ${platform.internalApiKey}`,
          ...(body && { 'content-type': 'application/json', 'idempotency-key': idempotencyKey }),
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(20_000),
      });
      return response.ok && ((await response.json()) as { id: string });
    } catch {
      return false; // connection refused, or the answer was cut off
    }
  });
}

interface AgentState {
  readonly status: string;
  readonly status_reason: string | null;
  readonly port: number | null;
  readonly deleted_at: Date | null;
  readonly open_operations: number;
}

/** Returns the agent's state in the database, or undefined while the database does not answer. */
async function stateOf(id: string): Promise<AgentState | undefined> {
  try {
    const [state] = await platform.query<AgentState>(
      `SELECT status, status_reason, port, deleted_at,
         (SELECT count(*)::int FROM operations
          WHERE agent_id = agents.id AND finished_at IS NULL) AS open_operations
       FROM agents WHERE id = $1`,
      [id],
    );
    return state;
  } catch {
    return undefined;
  }
}

/** Returns the pending work of open supervisors, and the end of the worker's log. */
async function evidence(): Promise<string> {
  const waiting = await platform
    .withTemporal(async (client) => {
      const runs: string[] = [];
      const query = 'ExecutionStatus = "Running" AND WorkflowType != "rollUpUsage"';
      for await (const { workflowId } of client.workflow.list({ query })) {
        const { raw } = await client.workflow.getHandle(workflowId).describe();
        const { pendingActivities, pendingWorkflowTask } = raw;
        runs.push(JSON.stringify({ workflowId, pendingActivities, pendingWorkflowTask }));
      }
      return runs;
    })
    .catch((error: unknown) => [String(error)]);
  const log = lastLines(path.join(platform.place.dataDir, 'run', 'worker.log'));
  return [...waiting, log].join('\n');
}

/** Checks that the agent runs in exactly one container, or has a reason and no container. */
async function settled(id: string): Promise<void> {
  const state = await until(`agent ${id} to come up or fail`, async () => {
    const now = await stateOf(id);
    return now && now.open_operations === 0 && now.status !== 'pending' && now;
  });
  const { containers, networks, volumes } = await platform.remains(id);
  if (state.status === 'error') {
    console.log(`  an agent ended in error: ${state.status_reason}`);
    expect(state.status_reason).toBeTruthy();
    expect({ containers, networks, volumes, port: state.port }).toEqual({
      containers: [],
      networks: [],
      volumes: [],
      port: null,
    });
    return;
  }
  expect(state).toMatchObject({ status: 'active', port: expect.any(Number) });
  expect(containers).toMatchObject([
    { State: 'running', Ports: [{ PublicPort: state.port, IP: '127.0.0.1' }] },
  ]);
  expect({ networks, volumes }).toMatchObject({ networks: [{}], volumes: [{}] });
  await until(`agent ${id} to answer`, async () => {
    const answer = await fetch(`http://127.0.0.1:${state.port}/healthz`).catch(() => undefined);
    return answer?.ok;
  });
}

/** Checks that only the agent's record is left. */
async function gone(id: string): Promise<void> {
  const state = await until(`agent ${id} to be gone`, async () => {
    const now = await stateOf(id);
    return now?.deleted_at && now.open_operations === 0 && now;
  });
  expect(state.port).toBeNull();
  expect(await platform.remains(id)).toEqual({ containers: [], networks: [], volumes: [] });
  await until(`the supervisor of ${id} to end`, async () => {
    try {
      const described = await platform.withTemporal((client) =>
        client.workflow.getHandle(superviseAgentId(id)).describe(),
      );
      return described.status.name === 'COMPLETED';
    } catch {
      return false; // Temporal is restarting
    }
  });
}

/**
 * Waits for a truthy result.
 *
 * @throws if there is none in time.
 */
async function until<T>(what: string, ask: () => Promise<T | undefined | false | null | ''>) {
  const answer = await poll(async () => (await ask()) || undefined, {
    timeoutMs: SETTLE_MS,
    everyMs: 250,
  });
  if (answer === undefined) throw new Error(`timed out waiting for ${what} (${random.seed})`);
  return answer as T;
}
