import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureAgentImage } from '../../dev/agent-image/build-openclaw.js';
import { readSettings } from '../../dev/settings.js';
import { AGENT_RUNTIME_VERSION } from '../../src/agents/lifecycle/settings.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { stopWhereItIs } from '../chaos/pauses.js';
import {
  startProvider,
  streamCompletion,
  type ProviderRequest,
  type ProviderStub,
} from '../support/provider-stub.js';
import type { Launcher } from '../dev/launcher.js';
import { until } from '../support/until.js';
import { RealPlatform } from './platform.js';

/** Milliseconds for which Temporal is unavailable. */
const AWAY_MS = 60_000;

/** Milliseconds for two starts of OpenClaw on a busy machine, or for the turns of a swarm. */
const LONG_MS = 240_000;

/** Milliseconds between questions, which share the platform's rate limit. */
const EVERY_MS = 3_000;

let provider: ProviderStub;
let platform: RealPlatform;
let launcher: Launcher;
let cookie: string;
let agents: string[];

beforeAll(async () => {
  provider = await startProvider();
  provider.behave((request, response) => {
    streamCompletion(response, [{ role: 'assistant', content: answerTo(request) }]);
  });
  const { cacheDir } = readSettings(process.env).process;
  const docker = connectDocker(process.env.DOCKER_HOST);
  const build = { docker, version: AGENT_RUNTIME_VERSION, cacheDir, log: console.log };
  platform = await RealPlatform.make({
    AGENT_RUNTIME_IMAGE: process.env.AGENT_RUNTIME_IMAGE ?? (await ensureAgentImage(build)),
    AI_PROVIDER: 'openrouter',
    OPENROUTER_BASE_URL: provider.baseUrl,
    OPENROUTER_API_KEY: provider.apiKey,
  });
  launcher = await platform.start();
  cookie = await signUp();
  agents = await Promise.all(['one', 'two'].map(runningAgent));
}, 20 * 60_000);
afterAll(async () => {
  await platform?.close();
  await provider?.close();
});

/** Answers the messages of this test, and others of OpenClaw with a text of their own. */
function answerTo({ text }: ProviderRequest): string {
  if (text.includes('Name a colour')) return 'A colour: green';
  return text.includes('Is the shop open') ? 'The shop is open' : 'Nothing to do';
}

async function ask<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${platform.webUrl}${path}`, {
    method,
    headers: { cookie, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(90_000),
  });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
  return JSON.parse(answer) as T; // the API's own form
}

/** Registers a user with a plan for several agents. @returns the session's cookie */
async function signUp(): Promise<string> {
  cookie = '';
  const login = { email: 'ada@example.com', password: 'correct horse battery' };
  const { id } = await ask<{ id: string }>('POST', '/api/register', { ...login, name: 'Ada' });
  const granted = await fetch(`${platform.backendUrl}/api/subscriptions/deploy`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${platform.internalApiKey}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ userId: id, plan: 'solo' }),
  });
  expect(granted.ok).toBe(true);
  const signedIn = await fetch(`${platform.webUrl}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(login),
  });
  return signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

async function runningAgent(name: string): Promise<string> {
  const made = await ask<{ agent: { id: string; status: string } }>(
    ...(['POST', '/api/agents/provision', { name }] as const),
  );
  await until(
    async () => {
      const found = await ask<typeof made>('GET', `/api/agents/${made.agent.id}`);
      return found.agent.status === 'running';
    },
    LONG_MS,
    EVERY_MS,
  );
  return made.agent.id;
}

interface Task {
  readonly id: string;
  readonly lastStatus: string | null;
}
interface Swarm {
  readonly id: string;
  readonly status: string;
  readonly result: string | null;
}

test('a task and a swarm are accepted while Temporal is unavailable for a minute, and OpenClaw answers both', async () => {
  const temporal = (await platform.place.processes()).find(({ name }) => name === 'temporal');
  if (!temporal) throw new Error('Temporal does not run');
  const goOn = await stopWhereItIs(temporal.pid);
  const began = performance.now();
  const made = await (async () => {
    try {
      const { task } = await ask<{ task: Task }>('POST', '/api/scheduled-tasks', {
        agentId: agents[0],
        name: 'Shop',
        message: 'Is the shop open?',
        schedule: new Date(Date.now() + AWAY_MS + 30_000).toISOString(),
      });
      const { swarm } = await ask<{ swarm: Swarm }>('POST', '/api/swarms', {
        name: 'Colours',
        task: 'Name a colour',
        agentIds: agents,
        strategy: 'parallel',
      });
      await delay(AWAY_MS - (performance.now() - began));
      expect(await swarmOf(swarm.id)).toMatchObject({ status: 'pending' });
      return { task, swarm };
    } finally {
      goOn();
    }
  })();

  const swarm = await until(
    async () => {
      const found = await swarmOf(made.swarm.id);
      return !/^(pending|running)$/.test(found.status) && found;
    },
    LONG_MS,
    EVERY_MS,
  );
  expect(swarm).toMatchObject({ status: 'completed', result: 'A colour: green' });
  const ran = await until(
    async () => {
      const found = await taskOf(made.task.id);
      return found.task.lastStatus !== null && found.task.lastStatus !== 'running' && found;
    },
    LONG_MS,
    EVERY_MS,
  );
  expect(ran.runs).toMatchObject([{ status: 'succeeded', answer: 'The shop is open' }]);

  // All of it is there after a restart of the platform.
  launcher.kill('SIGTERM');
  await launcher.ended;
  await platform.start();
  expect(await swarmOf(swarm.id)).toEqual(swarm);
  expect(await taskOf(made.task.id)).toEqual(ran);
});

const swarmOf = async (id: string) =>
  (await ask<{ swarm: Swarm }>('GET', `/api/swarms?id=${id}`)).swarm;

const taskOf = (id: string) =>
  ask<{ task: Task; runs: object[] }>('GET', `/api/scheduled-tasks?id=${id}`);
