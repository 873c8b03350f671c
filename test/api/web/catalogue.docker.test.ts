import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerName } from '../../../src/docker/containers/container-spec.js';
import { startPayments } from '../../support/payment-process.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { runInContainer } from '../../support/run-in-container.js';
import { until } from '../../support/until.js';

/* One case each on a real container; the long tier has the others. */

const TELEGRAM = '123456:rejected-token-of-telegram';

let platform: TestPlatform;
let ada: TestUser;
/** The agent with a channel. */
let agentId: string;
let otherId: string;
let stopPayments: (() => Promise<void>) | undefined;

beforeAll(async () => {
  platform = await testPlatform();
  ada = await platform.signUp('network');
  const channels = { telegram: { botToken: TELEGRAM } };
  const [made, other] = await Promise.all([
    platform.web(ada, 'POST', '/api/provision', { body: { name: 'Bot', channels } }),
    platform.runningAgent(ada),
  ]);
  expect([made.status, made.body.agent?.channels]).toEqual([201, ['telegram']]);
  [agentId, otherId] = [made.body.agent.id, other];
  await platform.becomes(agentId, 'active');
  stopPayments = startPayments(platform, generatePrivateKey());
});
afterAll(async () => {
  await stopPayments?.();
  await platform?.close();
});

const inAgent = (script: string) => runInContainer(platform.docker, containerName(agentId), script);
const verification = async () =>
  (await platform.web(ada, 'GET', `/api/agents/${agentId}/verify`)).body;

test('an agent whose channel token is rejected runs, and shows why the channel does not', async () => {
  const { body } = await platform.web(ada, 'GET', `/api/agents/${agentId}`);
  expect(body.agent.channels).toEqual([
    { name: 'telegram', ok: false, reason: expect.stringContaining('token') },
  ]);
  expect(body.agent.status).toBe('running');
  const configured = await inAgent(
    `process.stdout.write(require('fs').readFileSync('/home/node/.openclaw/openclaw.json', 'utf8'))`,
  );
  expect(JSON.parse(configured).channels).toEqual({
    telegram: { botToken: '${TELEGRAM_BOT_TOKEN}' },
  });
});

test('a running agent passes all checks, and has an attestation by the operator', async () => {
  const { body, status } = await platform.web(ada, 'POST', `/api/agents/${agentId}/verify`);
  expect(status, JSON.stringify(body)).toBe(200);
  const names = ['container', 'profile', 'configuration', 'gateway'];
  expect(body).toMatchObject({
    ...{ agentId, verified: true, verificationType: 'runtime' },
    checks: names.map((name) => ({ name, ok: true })),
    attestationUid: expect.stringMatching(/^0x[\da-f]{64}$/),
    attestation: { uid: body.attestationUid },
  });
  expect(await verification()).toEqual(body);
});

test('a skill is installed, used and removed, and ends the verification of the agent', async () => {
  const skill = { name: 'notes', description: 'Takes notes', content: '# Take notes' };
  const published = await platform.web(ada, 'POST', '/api/skills', { body: skill });
  expect(published.status).toBe(201);
  const act = (body: object) =>
    platform.web(ada, 'POST', '/api/skills/notes?wait=60', { body: { agentId, ...body } });
  const installed = () =>
    inAgent(
      `const file = '/home/node/.openclaw/skills/notes/SKILL.md';
       process.stdout.write(String(require('fs').existsSync(file)))`,
    );
  expect((await act({ action: 'install' })).body).toMatchObject({ status: 'succeeded' });
  expect(await installed()).toBe('true');
  expect(await verification()).toMatchObject({ verified: false, checks: [], attestation: null });
  const used = await act({ input: 'hello' });
  expect([used.status, used.body.message?.content]).toEqual([200, 'said: $notes hello']);
  expect((await act({ action: 'remove' })).body).toMatchObject({ status: 'succeeded' });
  expect(await installed()).toBe('false');
});

test('two agents answer a task, and the coordinator merges their answers', async () => {
  const body = { name: 'a swarm', task: 'Plan a tour', agentIds: [agentId, otherId] };
  const made = await platform.web(ada, 'POST', '/api/swarms', { body });
  expect([made.status, made.body.swarm?.status]).toEqual([201, 'pending']);
  const { id } = made.body.swarm;
  const swarm = await until(async () => {
    const shown = (await platform.web(ada, 'GET', `/api/swarms?id=${id}`)).body.swarm;
    return ['completed', 'failed'].includes(shown.status) && shown;
  });
  expect(swarm).toMatchObject({
    ...{ status: 'completed', coordinatorId: agentId, error: null },
    progress: { done: 2, total: 2 },
    members: [agentId, otherId].map((each) => ({ agentId: each, status: 'done', error: null })),
    result: expect.stringContaining('Plan a tour'),
  });
});
