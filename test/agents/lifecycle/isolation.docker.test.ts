// @module-tag attack
import { freshSession } from '../../../api/auth/fresh-session.js';
import { optionalSession } from '../../../api/auth/optional-session.js';
import { session } from '../../../api/auth/session.js';
import { randomUUID } from 'node:crypto';
import { ScheduleNotFoundError } from '@temporalio/client';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backendEndpoints } from '../../../api/backend/backend.js';
import { agentAiEndpoints } from '../../../api/containers/ai.js';
import type { Endpoint } from '../../../api/http/endpoint.js';
import { summarizerEndpoints } from '../../../api/summarizer/summarizer.js';
import { webEndpoints } from '../../../api/web/web.js';
import { findUser } from '../../../src/accounts/accounts/users.js';
import { readAgentTokens } from '../../../src/agents/credentials/agent-secrets.js';
import { KEY_SCOPES } from '../../../src/types/key-scopes.js';
import { HeartbeatSchedules } from '../../../temporal/heartbeat-schedules.js';
import { scheduleHeartbeats } from '../../../worker/schedule-heartbeats.js';
import { deleteAccountId, heartbeatScheduleId } from '../../../workflows/ids.js';
import { textsOfRows, tracesOf } from '../../platform/database/traces.js';
import { until } from '../../support/until.js';
import { call, type Answer } from '../../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../../support/platform.js';
import { testSummarizer, type TestSummarizer } from '../../support/summarizer.js';

/** A request for Ada's data, with the statuses that an anonymous caller and Bob get. */
interface Visit {
  readonly query?: () => string;
  readonly body?: () => unknown;
  readonly nobody: number;
  readonly bob: number;
  /** Status on the backend with a bearer token that is not the internal key: 403 by default. */
  readonly anotherKey?: number;
}

let platform: TestPlatform;
let summarizer: TestSummarizer;
let ada: TestUser;
let bob: TestUser;
let agentId: string;
let keyId: string;
let taskId: string;
let sessionId: string;
let wallet: string;
let identityId: string;
let splitId: string;
let swarmId: string;
let streamId: string;
let videoId: string;
let bobsAgentId: string;
let bobsKey: string;
let bobsTokens: string[];
/** Texts that no other user's answer may contain. */
let marks: string[];

const ADDRESS = `0x${'1'.repeat(40)}`;
const SECRET_NAME = 'the secret project';
const SECRET_KEY_NAME = 'key to the secret project';
const SECRET_IDENTITY = 'login of the secret project';
const SECRET_MESSAGE = 'a secret question';
const SECRET_STREAM = 'stream of the secret project';
const SECRET_SPLIT = 'split of the secret project';
/** The name of a private skill, which others may use as well. */
const SECRET_SKILL = 'skill-of-the-project';
const SECRET_SKILL_TEXT = 'instructions of the secret project';
const SECRET_CREDENTIAL = { name: 'SECRET_PROJECT_TOKEN', value: 'token of the secret project' };

beforeAll(async () => {
  // Health is checked once before the tests, so that any later change is caused by a request.
  platform = await testPlatform({
    env: {
      WATCHDOG_CHECK_INTERVAL: '60m',
      // No Icecast answers.
      RADIO_ICECAST_URL: 'http://127.0.0.1:1',
      RADIO_ADMIN_PASSWORD: 'a'.repeat(32),
      RADIO_AUTH_SECRET: 'b'.repeat(32),
    },
  });
  summarizer = await testSummarizer(({ headers, method }, response) => {
    // A page that shows all it received.
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<p>${JSON.stringify([method, headers])}</p>`);
  });
  [ada, bob] = [await platform.signUp('network'), await platform.signUp('network')];
  agentId = await platform.runningAgent(ada, { name: SECRET_NAME, config: { note: 'private' } });
  await platform.web(ada, 'POST', '/api/chat', { body: { agentId, message: SECRET_MESSAGE } });
  const credential = { action: 'set-credential', agentId, ...SECRET_CREDENTIAL };
  await platform.web(ada, 'POST', '/api/agent?wait=60', { body: credential });
  await platform.web(ada, 'POST', '/api/skills', {
    body: { name: SECRET_SKILL, description: SECRET_SKILL_TEXT, content: SECRET_SKILL_TEXT },
  });
  await platform.web(ada, 'POST', `/api/skills/${SECRET_SKILL}?wait=60`, {
    body: { agentId, action: 'install' },
  });
  await platform.web(ada, 'POST', '/api/heartbeat', { body: { frequency: '6h', enabled: true } });
  const task = await platform.web(ada, 'POST', '/api/scheduled-tasks', {
    body: { agentId, name: 'of ada', message: 'Is the shop open?', schedule: '7d' },
  });
  taskId = task.body.task.id;
  const made = await platform.web(ada, 'POST', '/api/keys', { body: { name: SECRET_KEY_NAME } });
  keyId = made.body.id;
  const { body } = await platform.web(ada, 'GET', '/api/auth/sessions');
  sessionId = body.sessions[0].id;
  const brought = await platform.web(ada, 'POST', '/api/wallet/walletprov', {
    body: { privateKey: generatePrivateKey() },
  });
  wallet = brought.body.address;
  identityId = randomUUID();
  const identity = { id: identityId, kind: 'github', issuer: 'https://codehost.test' } as const;
  await platform.db
    .asUser(ada.id)
    .transaction((db) =>
      db.Identity.create({ ...identity, userId: ada.id, subject: '1', label: SECRET_IDENTITY }),
    );
  splitId = await splitOfAda();
  streamId = await streamOfAda();
  const second = await platform.web(ada, 'POST', '/api/agents/provision', { body: newAgent() });
  const swarm = await platform.web(ada, 'POST', '/api/swarms', {
    body: { name: SECRET_NAME, task: SECRET_MESSAGE, agentIds: [agentId, second.body.agent.id] },
  });
  swarmId = swarm.body.swarm.id;
  videoId = randomUUID();
  await platform.asOwner(
    `INSERT INTO videos (id, user_id, prompt, status, settled_at)
     VALUES ('${videoId}', '${ada.id}', '${SECRET_MESSAGE}', 'failed', now())`,
  );
  const ofBob = await platform.web(bob, 'POST', '/api/keys', {
    body: { name: 'of bob', scopes: KEY_SCOPES },
  });
  bobsKey = ofBob.body.key;
  const bobsAgent = await platform.runningAgent(bob, { name: 'of bob' });
  bobsAgentId = bobsAgent;
  const everywhere = platform.db.asPlatform();
  bobsTokens = await readAgentTokens(everywhere, platform.secrets, bobsAgent);
  const detail = (await platform.backend(ada, 'GET', `/api/agents/${agentId}`)).body;
  const container = await platform.containers.inspect(agentId);
  marks = [
    SECRET_NAME,
    SECRET_MESSAGE,
    SECRET_KEY_NAME,
    SECRET_IDENTITY,
    SECRET_SPLIT,
    SECRET_STREAM,
    SECRET_SKILL_TEXT,
    identityId,
    SECRET_CREDENTIAL.name,
    SECRET_CREDENTIAL.value,
    keyId,
    wallet,
    made.body.key,
    'private',
    ada.id,
    ada.email,
    detail.subdomain,
    container?.id ?? '',
    ...(await readAgentTokens(everywhere, platform.secrets, agentId)),
  ];
});
afterAll(async () => {
  await summarizer?.close();
  await platform?.close();
});

/** Stores a stream of the radio. */
async function streamOfAda(): Promise<string> {
  const id = randomUUID();
  await platform.db.asUser(ada.id).query(
    `INSERT INTO radio_streams (id, user_id, title, format, password_hash)
     VALUES ($id, $userId, $title, 'mp3', 'hash')`,
    { id, userId: ada.id, title: SECRET_STREAM },
  );
  return id;
}

/** Stores a royalty split that was paid in part. */
async function splitOfAda(): Promise<string> {
  const userId = ada.id;
  return platform.db.asUser(userId).transaction(async (db) => {
    const { id } = await db.RoyaltySplit.create({
      userId,
      agentId,
      requestKey: 'one',
      name: SECRET_SPLIT,
      status: 'partial',
      fromAddress: ADDRESS,
      chainId: '4217',
      tokenAddress: ADDRESS,
      totalAmount: '1',
    });
    await db.RoyaltyPayout.create({
      splitId: id,
      position: 0,
      userId,
      address: ADDRESS,
      share: 1_000_000,
      amount: '1',
      status: 'failed',
    });
    return id;
  });
}

const missing = { nobody: 401, bob: 404 };
/** Chat needs a plan in the headers next to the internal key, and the visits send none. */
const unpaid = { nobody: 401, bob: 402, anotherKey: 401 };
const question = () => ({ user: ada.id, messages: [{ role: 'user', content: 'hello' }] });
const config = () => ({ config: { taken: 'over' } });
const busMessage = () => ({
  messageId: 'm',
  action: 'BOOKING_REQUEST',
  from: agentId,
  to: agentId,
  payload: {},
  timestamp: Math.floor(Date.now() / 1_000),
  signature: `0x${'1'.repeat(130)}`,
});
const payment = () => ({
  userId: ada.id,
  agentId,
  fromAddress: ADDRESS,
  name: 'of bob',
  totalAmount: '1',
  recipients: [{ address: ADDRESS, share: 100 }],
  bookingId: 'of bob',
});
const newAgent = () => ({ name: randomUUID(), model: 'gpt-4' });
const clone = () => ({
  parentAgentId: agentId,
  name: randomUUID(),
  paymentProof: {
    transactionHash: `0x${'a'.repeat(64)}`,
    amount: '1.0',
    currency: 'pathUSD',
    timestamp: 0,
    chainId: 4217,
    from: `0x${'b'.repeat(40)}`,
    to: `0x${'c'.repeat(40)}`,
  },
});

/** Returns the seven endpoints of the file explorer for the workspace of Ada's agent. */
function browsing(visit: Visit): Readonly<Record<string, Visit>> {
  const asked = (more = '') => ({ ...visit, query: () => `?agentId=${agentId}${more}` });
  const sent = (more: object) => ({ ...visit, body: () => ({ agentId, ...more }) });
  return {
    'GET /api/browse/tree': asked(),
    'GET /api/browse/read': asked('&path=openclaw.json'),
    'POST /api/browse/write': sent({ path: 'of-bob.txt', content: 'of bob' }),
    'GET /api/browse/git-status': asked(),
    'GET /api/browse/git-diff': asked(),
    'GET /api/browse/git-log': asked(),
    'POST /api/browse/git-sync': sent({}),
  };
}

const memoryFile = () => `?agentId=${agentId}&path=MEMORY.md`;
const memoryWrite = () => ({ agentId, path: 'MEMORY.md', content: 'of bob' });

const WEB: Readonly<Record<string, Visit>> = {
  'POST /api/register': {
    body: () => ({ email: ada.email, password: 'another password' }),
    nobody: 409,
    bob: 409,
  },
  'POST /api/auth/login': {
    body: () => ({ email: ada.email, password: 'another password' }),
    nobody: 401,
    bob: 401,
  },
  'GET /api/auth/nonce': { nobody: 200, bob: 200 },
  'POST /api/auth/nonce': { nobody: 200, bob: 200 },
  'POST /api/wallet-auth': {
    nobody: 400,
    bob: 400,
    body: () => ({ address: `0x${'1'.repeat(40)}`, message: ada.email, signature: '0x00' }),
  },
  'GET /api/wallet': { nobody: 401, bob: 200 },
  'POST /api/wallet': { nobody: 401, bob: 404, body: () => ({ action: 'get_seed' }) },
  'GET /api/wallet/address': { nobody: 200, bob: 200 },
  'POST /api/wallet/create': { nobody: 401, bob: 500, body: () => ({ email: ada.email }) },
  'GET /api/wallet/walletprov': { nobody: 200, bob: 200 },
  'POST /api/wallet/walletprov': { nobody: 401, bob: 200, body: () => ({ userId: ada.id }) },
  // There is no escrow here: test/money/sessions has one.
  'POST /api/wallet/sessions': {
    nobody: 503,
    bob: 503,
    body: () => ({ address: `0x${'1'.repeat(40)}`, deposit: '1.00' }),
  },
  'GET /api/wallet/sessions': { nobody: 400, bob: 400 },
  'DELETE /api/wallet/sessions': { nobody: 400, bob: 400 },
  // There is no payment processor here: test/billing has one.
  'GET /api/wallet/top-up': { nobody: 401, bob: 500 },
  'POST /api/wallet/top-up': { nobody: 500, bob: 500, body: () => ({}) },
  'POST /api/webhooks/email': { nobody: 503, bob: 503, body: () => ({}) },
  'GET /api/payproc/credits': { nobody: 401, bob: 500, query: () => '?price=credits-500' },
  'POST /api/payproc/storage-upgrade': { nobody: 401, bob: 500, body: () => ({ plan: '10gb' }) },
  'GET /api/payproc/checkout': { nobody: 401, bob: 500, query: () => '?plan=solo' },
  'GET /api/credits': { nobody: 401, bob: 200 },
  'POST /api/settings/identities/wallet': {
    nobody: 401,
    bob: 400,
    body: () => ({ address: `0x${'1'.repeat(40)}`, message: ada.email, signature: '0x00' }),
  },
  'POST /api/settings/identities/farcaster': {
    nobody: 401,
    bob: 401,
    body: () => ({ token: ada.cookie }),
  },
  'GET /api/auth/token-gating/verify': { nobody: 400, bob: 503 },
  'POST /api/auth/token-gating/verify': { nobody: 400, bob: 503, body: () => ({}) },
  'GET /api/auth/farcaster/verify': { nobody: 200, bob: 200 },
  'POST /api/auth/farcaster/verify': { nobody: 400, bob: 400, body: () => ({}) },
  'GET /api/auth/farcaster/refresh': { nobody: 200, bob: 200 },
  'POST /api/auth/farcaster/refresh': {
    nobody: 401,
    bob: 401,
    body: () => ({ token: ada.cookie }),
  },
  'GET /api/auth/session': { nobody: 200, bob: 200 },
  'GET /api/auth/sessions': { nobody: 401, bob: 200 },
  'DELETE /api/auth/sessions': { nobody: 401, bob: 200 },
  'DELETE /api/auth/sessions/:id': missing,
  'POST /api/settings/password': {
    nobody: 401,
    bob: 403,
    body: () => ({ currentPassword: 'a guess', newPassword: 'another password' }),
  },
  'GET /api/settings/export': { nobody: 401, bob: 200 },
  'DELETE /api/settings': { nobody: 401, bob: 400, body: () => ({ confirm: ada.email }) },
  'POST /api/auth/forgot-password': {
    nobody: 200,
    bob: 200,
    body: () => ({ email: ada.email }),
  },
  'POST /api/auth/reset-password': {
    nobody: 400,
    bob: 400,
    body: () => ({ token: 'a guess', password: 'another password' }),
  },
  'POST /api/auth/verify-email': { nobody: 401, bob: 400, body: () => ({ token: 'a guess' }) },
  'POST /api/auth/verify-email/resend': { nobody: 401, bob: 200 },
  'GET /api/settings': { nobody: 401, bob: 200 },
  'POST /api/settings': {
    nobody: 401,
    bob: 200,
    body: () => ({ name: 'Bob', id: ada.id, userId: ada.id }),
  },
  'PATCH /api/settings': { nobody: 401, bob: 200, body: () => ({ name: 'Bob', id: ada.id }) },
  'GET /api/auth/google': { nobody: 302, bob: 302 },
  'GET /api/auth/google/callback': { nobody: 302, bob: 302 },
  'GET /api/auth/github': { nobody: 302, bob: 302 },
  'GET /api/auth/github/callback': { nobody: 302, bob: 302 },
  'GET /api/settings/identities': { nobody: 401, bob: 200 },
  'POST /api/settings/identities/google': { nobody: 401, bob: 503 },
  'POST /api/settings/identities/github': { nobody: 401, bob: 503 },
  'DELETE /api/settings/identities/:id': missing,
  'GET /api/auth/admin': { nobody: 200, bob: 200, query: () => '?token=none' },
  'POST /api/auth/admin': { ...missing, body: () => ({ token: 'none' }) },
  'GET /api/keys': { nobody: 401, bob: 200 },
  'POST /api/keys': { nobody: 401, bob: 201, body: () => ({ name: 'of bob' }) },
  'POST /api/keys/validate': {
    nobody: 401,
    bob: 401,
    body: () => ({ apiKey: `sk_${'x'.repeat(43)}` }),
  },
  'GET /api/keys/:id': missing,
  'DELETE /api/keys/:id': missing,
  'GET /api/agents': { nobody: 200, bob: 200 },
  'GET /api/agents/:id': missing,
  'PUT /api/agents/:id': { ...missing, body: config },
  'DELETE /api/agents/:id': missing,
  'GET /api/agents/:id/config': missing,
  'PUT /api/agents/:id/config': { ...missing, body: config },
  'POST /api/agents/:id/start': missing,
  'POST /api/agents/:id/stop': missing,
  'POST /api/agents/:id/restart': missing,
  'POST /api/agents/:id/repair': missing,
  'POST /api/agents/:id/update': missing,
  'POST /api/agents/:id/reset-memory': missing,
  'POST /api/agents/:id/reset-empty': missing,
  'POST /api/agents/:id/restore': { ...missing, body: () => ({ archiveId: 'archive' }) },
  'GET /api/agents/:id/archives': missing,
  'GET /api/agents/:id/verify': missing,
  'POST /api/agents/:id/verify': missing,
  'DELETE /api/agents/:id/verify': missing,
  'GET /api/agents/:id/operations': missing,
  'GET /api/agents/address': { nobody: 404, bob: 404, query: () => '?domain=x.localhost' },
  'GET /api/agents/:id/token': missing,
  'POST /api/agents/:id/open': missing,
  'GET /api/agents/clone': { nobody: 200, bob: 200 },
  'POST /api/agents/clone': { ...missing, body: clone },
  'GET /api/agents/provision': { nobody: 401, bob: 200 },
  'POST /api/agents/provision': { nobody: 401, bob: 201, body: newAgent },
  'GET /api/swarms': { ...missing, query: () => `?id=${swarmId}` },
  'POST /api/swarms': {
    ...missing,
    body: () => ({ name: 'of bob', task: 'tell', agentIds: [agentId, bobsAgentId] }),
  },
  'PUT /api/swarms': { ...missing, body: () => ({ id: swarmId, action: 'cancel' }) },
  'POST /api/provision': { nobody: 401, bob: 201, body: newAgent },
  'GET /api/generate-video': { ...missing, query: () => `?id=${videoId}` },
  // No provider is configured here: test/videos has one.
  'POST /api/generate-video': {
    nobody: 401,
    bob: 503,
    body: () => ({ prompt: 'of bob', agentId }),
  },
  'GET /api/generate-video/:id/file': missing,
  'POST /api/webhooks/video': { nobody: 503, bob: 503, body: () => ({}) },
  'GET /api/chat': { ...missing, query: () => `?agentId=${agentId}` },
  'POST /api/chat': { ...missing, body: () => ({ agentId, message: 'hello' }) },
  'GET /api/agent': { ...missing, query: () => `?agentId=${agentId}` },
  'POST /api/agent': {
    ...missing,
    body: () => ({ action: 'set-credential', agentId, name: 'OF_BOB', value: 'of bob' }),
  },
  'GET /api/models': { nobody: 401, bob: 200 },
  // Equal for every user.
  'GET /api/datafeeds': { nobody: 401, bob: 200 },
  // The same for every user; 503 without Icecast.
  'GET /api/radio/live': { nobody: 401, bob: 503 },
  'GET /api/radio/streams': { ...missing, query: () => `?id=${streamId}` },
  // No token is configured.
  'POST /api/radio/streams': { nobody: 401, bob: 503, body: () => ({ title: 'Night', agentId }) },
  'DELETE /api/radio/streams': { ...missing, query: () => `?id=${streamId}` },
  'GET /api/demo/chat': { nobody: 200, bob: 200 },
  'POST /api/demo/chat': { nobody: 200, bob: 200, body: () => ({ message: 'hello' }) },
  'GET /api/instance/:userId': missing,
  'GET /api/instance/:userId/stats': missing,
  'GET /api/health': { nobody: 200, bob: 200 },
  'GET /api/heartbeat': { nobody: 401, bob: 200 },
  'POST /api/heartbeat': { nobody: 401, bob: 200, body: () => ({ frequency: '7m' }) },
  'DELETE /api/heartbeat': { nobody: 401, bob: 200 },
  'GET /api/dashboard/cost': { nobody: 401, bob: 200 },
  'GET /api/mission-control/fleet/graph': { nobody: 401, bob: 200 },
  'GET /api/mission-control/fleet/traces': { ...missing, query: () => `?id=${swarmId}` },
  'GET /api/mission-control/fleet/costs': { nobody: 401, bob: 200 },
  'GET /api/mission-control/fleet/bookings': { nobody: 401, bob: 200 },
  'GET /api/colony/status': { ...missing, query: () => `?view=soul&agentId=${agentId}` },
  'GET /api/metrics': { nobody: 401, bob: 200 },
  'GET /api/billing': { nobody: 401, bob: 200 },
  'POST /api/billing': { nobody: 401, bob: 200, body: () => ({ action: 'get-usage' }) },
  'GET /': { nobody: 200, bob: 200 },
  'GET /login': { nobody: 200, bob: 200 },
  'GET /verify-email': { nobody: 200, bob: 200, query: () => '?token=x' },
  'GET /reset-password': { nobody: 200, bob: 200, query: () => '?token=x' },
  'GET /dashboard': { nobody: 302, bob: 200 },
  'GET /favicon.ico': { nobody: 200, bob: 200 },
  'GET /pages.css': { nobody: 200, bob: 200 },
  'GET /pages.js': { nobody: 200, bob: 200 },
  'GET /api/skills': { ...missing, query: () => `?name=${SECRET_SKILL}` },
  'POST /api/skills': {
    nobody: 401,
    bob: 201,
    body: () => ({
      ...{ name: 'skill-of-bob', description: 'by bob', content: 'of bob' },
      visibility: 'public',
    }),
  },
  'POST /api/skills/:name': {
    ...missing,
    body: () => ({ agentId, action: 'install', input: 'of bob' }),
  },
  'GET /api/skills/instant-split': { nobody: 401, bob: 200 },
  'POST /api/skills/instant-split': { ...missing, body: payment },
  'GET /api/skills/booking-settlement': { nobody: 401, bob: 200 },
  'POST /api/skills/booking-settlement': { ...missing, body: payment },
  'GET /api/scheduled-tasks': { ...missing, query: () => `?id=${taskId}` },
  'POST /api/scheduled-tasks': {
    ...missing,
    body: () => ({ agentId, name: 'of bob', message: 'text from bob', schedule: '5m' }),
  },
  'PUT /api/scheduled-tasks': {
    ...missing,
    body: () => ({ id: taskId, message: 'text from bob', enabled: false, run: true }),
  },
  'DELETE /api/scheduled-tasks': { ...missing, query: () => `?id=${taskId}` },
  ...browsing(missing),
  'GET /api/memory': { ...missing, query: memoryFile },
  'POST /api/memory': { ...missing, body: memoryWrite },
  'GET /api/v1/gateway': { nobody: 200, bob: 200 },
  'POST /api/v1/gateway': {
    nobody: 402,
    bob: 402,
    body: () => ({ plugin: 'chain', action: 'transfers', input: { hash: `0x${'1'.repeat(64)}` } }),
  },
  // There is no x402 gateway here: test/api/web/x402.test.ts has one.
  'GET /api/x402': { nobody: 503, bob: 503 },
  'POST /api/x402': {
    nobody: 401,
    bob: 404,
    body: () => ({ action: 'pay', agentId, amount: 1, recipient: ADDRESS }),
  },
  // Needs the identity provider's signature, and no provider is configured here.
  'POST /api/security/risc': { nobody: 503, bob: 503, body: () => ({ sub: ada.id }) },
  'GET /api/security/risc': { nobody: 200, bob: 200 },
  'POST /api/auth/google/risc': { nobody: 503, bob: 503, body: () => ({ email: ada.email }) },
  'POST /api/auth/signout': { nobody: 200, bob: 200 },
};

/** Equal for every valid key. */
const ofKey = { nobody: 401, bob: 200, anotherKey: 401 } as const;

const BACKEND: Readonly<Record<string, Visit>> = {
  'GET /api/agents': { nobody: 401, bob: 200 },
  'POST /api/agents': { nobody: 401, bob: 201, body: () => ({ name: randomUUID() }) },
  'GET /api/agents/:id': missing,
  'PUT /api/agents/:id': { ...missing, body: config },
  // An agent that Bob cannot see counts as deleted already.
  'DELETE /api/agents/:id': { nobody: 401, bob: 200 },
  'POST /api/agents/:id/start': missing,
  'POST /api/agents/:id/stop': missing,
  'POST /api/agents/:id/restart': missing,
  'POST /api/agents/:id/repair': missing,
  'POST /api/agents/:id/update': missing,
  'POST /api/agents/:id/reset-memory': missing,
  'POST /api/agents/:id/reset-empty': missing,
  'POST /api/agents/:id/restore': { ...missing, body: () => ({ archiveId: 'archive' }) },
  'GET /api/agents/:id/archives': missing,
  'GET /api/agents/:id/verification': missing,
  'POST /api/agents/:id/verify': missing,
  'DELETE /api/agents/:id/verify': missing,
  'POST /api/agents/:id/skills/:skill': missing,
  'DELETE /api/agents/:id/skills/:skill': missing,
  'PUT /api/agents/:id/skills/:skill': { ...missing, body: () => ({ enabled: false }) },
  'PUT /api/agents/:id/credentials/:name': { ...missing, body: () => ({ value: 'of bob' }) },
  'GET /api/agents/:id/operations': missing,
  'GET /api/agents/:id/messages': missing,
  'GET /api/agents/:id/stats': missing,
  'GET /api/agents/:id/token': missing,
  'GET /api/agents/clone': { nobody: 200, bob: 200 },
  'POST /api/agents/clone': { ...missing, anotherKey: 401, body: clone },
  'POST /api/deployments': { nobody: 401, bob: 201, body: newAgent },
  'POST /api/subscriptions/deploy': {
    ...missing,
    body: () => ({ userId: ada.id, plan: 'label' }),
  },
  // Totals over all users' agents, refused to a caller who acts for a user.
  'GET /api/hosts': { nobody: 401, bob: 403 },
  'GET /api/underground/payments': { nobody: 401, bob: 403 },
  'POST /api/hosts/:id/cordon': { nobody: 401, bob: 403 },
  'POST /api/hosts/:id/uncordon': { nobody: 401, bob: 403 },
  'POST /api/hosts/:id/drain': { nobody: 401, bob: 403 },
  'DELETE /api/hosts/:id': { nobody: 401, bob: 403 },
  'GET /api/runtime/version': { nobody: 200, bob: 200 },
  'GET /api/runtime/instances': { nobody: 401, bob: 200, query: () => '?stats=true' },
  'GET /api/runtime/instances/:id/stats': missing,
  'GET /api/logs/:agentId/stream': missing,
  'GET /api/logs/:agentId/history': missing,
  'GET /api/logs/:agentId/active': missing,
  'POST /api/logs/:agentId/stop': { ...missing, body: () => ({ streamId: 'x' }) },
  'POST /api/underground/wallets': {
    nobody: 401,
    bob: 404,
    anotherKey: 401,
    body: () => ({ userId: ada.id, agentId }),
  },
  'GET /api/underground/wallets/:address/balance': {
    nobody: 401,
    bob: 404,
    anotherKey: 401,
    query: () => `?userId=${ada.id}`,
  },
  'GET /api/underground/events': { nobody: 401, bob: 200, anotherKey: 401 },
  'POST /api/underground/events': {
    ...missing,
    anotherKey: 401,
    body: () => ({
      ...{ agentId, name: 'of bob', description: "bob's event", venue: 'of bob' },
      ...{ eventDate: '2027-01-01', ticketPriceUsdc: '1', totalTickets: 1 },
    }),
  },
  'POST /api/underground/splits': { ...missing, anotherKey: 401, body: payment },
  'GET /api/underground/splits': {
    ...missing,
    anotherKey: 401,
    query: () => `?userId=${ada.id}`,
  },
  'GET /api/underground/splits/:id': { ...missing, anotherKey: 401 },
  'POST /api/underground/splits/:id/retry': { ...missing, anotherKey: 401 },
  // The signature is the credential, and this one is of no wallet.
  'POST /api/underground/bus/send': { nobody: 401, bob: 401, anotherKey: 401, body: busMessage },
  'POST /api/underground/bus/sign': {
    ...missing,
    anotherKey: 401,
    body() {
      const { from, signature, ...message } = busMessage();
      return { agentId, message };
    },
  },
  'GET /api/underground/bus/messages/:messageId': { ...missing, anotherKey: 401 },
  'POST /api/underground/bus/messages/:messageId/redeliver': { ...missing, anotherKey: 401 },
  'PUT /api/underground/webhooks/:agentId': {
    ...missing,
    anotherKey: 401,
    body: () => ({ url: 'https://example.com/' }),
  },
  'GET /api/underground/webhooks/:agentId': { ...missing, anotherKey: 401 },
  'DELETE /api/underground/webhooks/:agentId': { ...missing, anotherKey: 401 },
  ...browsing({ ...missing, anotherKey: 401 }),
  'GET /api/memory': { ...missing, query: memoryFile },
  'POST /api/memory': { ...missing, body: memoryWrite },
  // Accept only users' API keys: the internal key is refused.
  'POST /api/validate-key': { nobody: 401, bob: 401, anotherKey: 401 },
  'GET /api/ai/health': { nobody: 200, bob: 200 },
  'GET /api/ai/models': { nobody: 200, bob: 200 },
  'GET /api/ai/models/:provider': { nobody: 404, bob: 404, anotherKey: 404 },
  // These endpoints also accept users' API keys, but no agent's token.
  'POST /api/ai/models/select': { nobody: 401, bob: 200, anotherKey: 401, body: () => ({}) },
  'POST /api/ai/estimate-cost': {
    ...unpaid,
    body: () => ({ model: 'openai/gpt-4', inputTokens: 1, outputTokens: 1 }),
  },
  'POST /api/ai/chat': { ...unpaid, nobody: 402, body: question },
  'POST /v1/chat/completions': { ...unpaid, body: question },
  'GET /v1/models': unpaid,
  'GET /api/usage/summary': { nobody: 401, bob: 200 },
  'GET /api/usage/by-agent/:agentId': { nobody: 401, bob: 200 },
  'GET /api/usage/by-model': { nobody: 401, bob: 200 },
  'GET /api/usage/daily': { nobody: 401, bob: 200 },
  'GET /api/traces/:id': missing,
  'GET /api/metrics/:userId/historical': missing,
  'GET /api/metrics/:userId/performance': missing,
  'GET /api/metrics/:userId/summary': missing,
  'GET /api/usage/tools': { nobody: 401, bob: 200, anotherKey: 401 },
  'GET /': { nobody: 200, bob: 200 },
  'GET /health': { nobody: 200, bob: 200 },
  'POST /api/register-home': { ...missing, body: () => ({ userId: ada.id }) },
  'POST /api/register-link': { ...missing, body: () => ({ userId: ada.id }) },
  // Only Icecast has the secret.
  'POST /api/radio/authorize': { nobody: 401, bob: 401, anotherKey: 401 },
  'GET /api/installations': { nobody: 401, bob: 200 },
  'GET /api/hostmcp/health': ofKey,
  'POST /api/hostmcp/health': ofKey,
  'GET /api/hostmcp/info': ofKey,
  'POST /api/hostmcp/info': ofKey,
  'GET /api/hostmcp/setup': ofKey,
  'POST /api/hostmcp/setup': ofKey,
  'GET /api/hostmcp/examples': ofKey,
  'POST /api/hostmcp/examples': ofKey,
  'GET /api/hostmcp/docs': ofKey,
  'POST /api/hostmcp/docs': ofKey,
  'GET /api/hostmcp/github': ofKey,
  'POST /api/hostmcp/github': ofKey,
  'POST /api/hostmcp/validate-config': {
    nobody: 401,
    bob: 200,
    anotherKey: 401,
    body: () => ({ config: { servers: {} } }),
  },
  'GET /api/hostmcp/tools': ofKey,
  // A refusal is the result of the tool: test/mcp/ visits all tools.
  'POST /api/hostmcp/tools': {
    nobody: 401,
    bob: 200,
    anotherKey: 401,
    body: () => ({
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'agents_get', arguments: { id: agentId } },
    }),
  },
  'POST /api/invite/generate': { nobody: 401, bob: 201, body: () => ({}) },
  // The code is the proof.
  'POST /api/invite/validate': {
    nobody: 404,
    bob: 404,
    anotherKey: 404,
    body: () => ({ code: ada.id }),
  },
  'PUT /api/heartbeat': { nobody: 401, bob: 200, body: () => ({ frequency: '8m' }) },
  // Public by the contract: a heartbeat reveals nothing and only marks an installation as active.
  'POST /api/heartbeat': { nobody: 200, bob: 200, body: () => ({ userId: ada.id }) },
};

const AGENTS: Readonly<Record<string, Visit>> = {
  'POST /v1/chat/completions': {
    nobody: 401,
    bob: 200,
    body: () => ({ model: agentId, user: ada.id, messages: [{ role: 'user', content: 'hi' }] }),
  },
  'GET /v1/models': { nobody: 401, bob: 200 },
};

const ofPage = { nobody: 200, bob: 200, body: () => ({ url: `${summarizer.site}/` }) };

const SUMMARIZER: Readonly<Record<string, Visit>> = {
  'GET /': { nobody: 200, bob: 200 },
  'GET /health': { nobody: 200, bob: 200 },
  'POST /api/summarize': ofPage,
  'POST /api/extract': ofPage,
  'POST /api/read': ofPage,
};

const nameOf = ({ method, path }: Endpoint) => `${method} ${path}`;

type Ask = (method: string, path: string, body: unknown) => Promise<Answer>;

/** Ada's data after the last visit. */
let left: unknown;

/** Requests Ada's data and checks that the answer shows none and nothing changes. */
async function visit(name: string, { query, body }: Visit, ask: Ask): Promise<number> {
  const [method = '', template = ''] = name.split(' ');
  const path = template
    .replace('/keys/:id', `/keys/${keyId}`)
    .replace('/identities/:id', `/identities/${identityId}`)
    .replace('/sessions/:id', `/sessions/${sessionId}`)
    .replace('/splits/:id', `/splits/${splitId}`)
    .replace(/:id|:agentId/, agentId)
    .replace(':skill', SECRET_SKILL)
    .replace('/skills/:name', `/skills/${SECRET_SKILL}`)
    .replace(':name', 'OF_BOB')
    .replace(':userId', ada.id)
    .replace(':address', wallet)
    .concat(query?.() ?? '');
  const before = (left ??= await stateOfAda());
  const answer = await ask(method, path, body?.());
  left = await stateOfAda();
  const reported = answer.text + JSON.stringify([...answer.headers]);
  expect([name, ...marks.filter((mark) => reported.includes(mark))]).toEqual([name]);
  expect([name, left]).toEqual([name, before]);
  return answer.status;
}

/** Tables with Ada's rows, each with its columns of observation times to ignore. */
const TABLES = {
  agents: ['observed_at', 'updated_at'],
  sessions: ['last_seen_at'],
  operations: [],
  agent_archives: [],
  agent_verifications: [],
  messages: [],
  heartbeats: [],
  scheduled_tasks: ['scheduled'],
  scheduled_task_runs: [],
  agent_emails: [],
  wallets: [],
  royalty_splits: [],
  royalty_payouts: [],
  x402_payments: [],
  underground_events: [],
  api_keys: [],
  provider_keys: [],
  agent_secrets: [],
  agent_credentials: [],
  agent_skills: [],
  skills: [],
  skill_versions: [],
  subscriptions: [],
  users: [],
  identities: [],
  unlinked_identities: [],
  installations: ['last_seen', 'status'],
};

/** Returns all of Ada's data without observation times. */
async function stateOfAda(): Promise<unknown> {
  const rows = (await textsOfRows(platform.db.asUser(ada.id), TABLES)).sort();
  const container = await platform.containers.inspect(agentId);
  const sessions = await platform.web(ada, 'GET', '/api/auth/session');
  return {
    rows,
    container: [container?.id, container?.status, container?.startedAt],
    signedIn: sessions.body.user?.id,
  };
}

describe("isolation of a user's data from other users", () => {
  test('the lists of this test name every declared endpoint', () => {
    const { web, backend, agents } = platform.dependencies;
    expect(Object.keys(WEB).sort()).toEqual(webEndpoints(web).map(nameOf).sort());
    expect(Object.keys(BACKEND).sort()).toEqual(backendEndpoints(backend).map(nameOf).sort());
    expect(Object.keys(AGENTS).sort()).toEqual(agentAiEndpoints(agents).map(nameOf).sort());
    const ofSummarizer = summarizerEndpoints(summarizer.dependencies).map(nameOf);
    expect(Object.keys(SUMMARIZER).sort()).toEqual(ofSummarizer.sort());
  });

  test('control: a visit fails if data is shown or changed', async () => {
    const asAda: Ask = (method, path, body) => platform.web(ada, method, path, { body });
    const check = visit('GET /api/agents/:id', missing, asAda);
    await expect(check).rejects.toThrow('to deeply equal');
    const grant: Ask = (method, path, body) => platform.backend(ada, method, path, { body });
    const name = 'POST /api/subscriptions/deploy';
    const silent: Ask = async (...asked) => ({ ...(await grant(...asked)), text: '' });
    const body = () => ({ userId: ada.id, plan: 'collective' });
    await expect(visit(name, { ...missing, body }, silent)).rejects.toThrow('to deeply equal');
  });

  test.each(Object.keys(WEB))(
    "%s of the web API keeps Ada's data from other callers",
    async (name) => {
      const entry = WEB[name];
      if (!entry) throw new Error(name);
      const asNobody: Ask = (method, path, body) => platform.web(undefined, method, path, { body });
      expect(await visit(name, entry, asNobody)).toBe(entry.nobody);
      const asBob: Ask = (method, path, body) => platform.web(bob, method, path, { body });
      expect(await visit(name, entry, asBob)).toBe(entry.bob);
    },
  );

  test.each(Object.keys(WEB))(
    '%s of the web API authenticates by the API key if a cookie is sent too',
    async (name) => {
      const entry = WEB[name];
      const declared = webEndpoints(platform.dependencies.web).find(
        (each) => nameOf(each) === name,
      );
      if (!entry || !declared) throw new Error(name);
      const asBobsProgram: Ask = (method, path, body) =>
        platform.web(ada, method, path, { body, headers: { authorization: `Bearer ${bobsKey}` } });
      const wantsSession = declared.auth === session || declared.auth === freshSession;
      const takesSession = declared.auth === optionalSession;
      const expected = wantsSession ? 403 : takesSession ? entry.nobody : entry.bob;
      expect(await visit(name, entry, asBobsProgram)).toBe(expected);
    },
  );

  test.each(Object.keys(BACKEND))(
    "%s of the backend keeps Ada's data from other callers",
    async (name) => {
      const entry = BACKEND[name];
      if (!entry) throw new Error(name);
      const asNobody: Ask = (method, path, body) =>
        call(platform.backendUrl, method, path, { body, headers: { 'x-user-id': ada.id } });
      expect(await visit(name, entry, asNobody)).toBe(entry.nobody);
      const byCookie: Ask = (method, path, body) =>
        call(platform.backendUrl, method, path, { body, headers: { cookie: ada.cookie } });
      expect(await visit(name, entry, byCookie)).toBe(entry.nobody);
      const withAnotherKey: Ask = (method, path, body) =>
        call(platform.backendUrl, method, path, {
          body,
          headers: { authorization: `Bearer ${bobsTokens[0]}`, 'x-user-id': ada.id },
        });
      expect(await visit(name, entry, withAnotherKey)).toBe(
        entry.anotherKey ?? (entry.nobody === 401 ? 403 : 200),
      );
      const forBob: Ask = (method, path, body) => platform.backend(bob, method, path, { body });
      expect(await visit(name, entry, forBob)).toBe(entry.bob);
    },
  );

  test.each(Object.keys(AGENTS))(
    "%s of the agents' listener keeps Ada's data from other callers",
    async (name) => {
      const entry = AGENTS[name];
      if (!entry) throw new Error(name);
      const as = (headers: Record<string, string>): Ask => {
        return (method, path, body) => call(platform.agentsUrl, method, path, { body, headers });
      };
      expect(await visit(name, entry, as({ 'x-user-id': ada.id }))).toBe(entry.nobody);
      const key = { authorization: `Bearer ${platform.internalKey}`, 'x-user-id': ada.id };
      expect(await visit(name, entry, as(key))).toBe(entry.nobody);
      const statuses = [];
      for (const token of bobsTokens) {
        const headers = { authorization: `Bearer ${token}`, 'x-user-id': ada.id };
        statuses.push(await visit(name, entry, as(headers)));
      }
      // One of the two tokens is the gateway's, which this listener refuses.
      expect(statuses.sort()).toEqual([entry.bob, 401]);
    },
  );

  test.each(Object.keys(SUMMARIZER))(
    "%s of the summarizer keeps the caller's headers from web pages",
    async (name) => {
      const entry = SUMMARIZER[name];
      if (!entry) throw new Error(name);
      const shown = {
        cookie: ada.cookie,
        authorization: `Bearer ${platform.internalKey}`,
        'x-user-id': ada.id,
        'x-session-id': sessionId,
        referer: `http://${ada.email}`,
      };
      const as = (headers: Record<string, string>): Ask => {
        return async (method, path, body) => {
          const answer = await call(summarizer.url, method, path, { body, headers });
          const reported = Object.values(shown).filter((value) => answer.text.includes(value));
          expect([name, ...reported]).toEqual([name]);
          return answer;
        };
      };
      expect(await visit(name, entry, as({}))).toBe(entry.nobody);
      expect(await visit(name, entry, as(shown))).toBe(entry.bob);
    },
  );
});

// Runs last, as it deletes Ada's account.
describe('the deletion of an account with a running agent', () => {
  test('deleting an account with an agent leaves nothing in the database, Docker or Temporal, and no other user loses data', async () => {
    const { db, log, temporal } = platform;
    const ofBob = async () => {
      const traces = await tracesOf(db, { ...bob, name: bob.email });
      return traces
        .map((trace) => trace.split(':')[0])
        .filter((table) => table !== 'mails')
        .sort();
    };
    const before = await ofBob();
    const { email, password } = ada;
    const signedIn = await platform.web(undefined, 'POST', '/api/auth/login', {
      body: { email, password },
    });
    const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
    expect(await platform.resourcesOf(agentId)).not.toEqual([]);
    const asked = await platform.web({ ...ada, cookie }, 'DELETE', '/api/settings', {
      body: { confirm: email },
    });
    expect([asked.status, asked.body]).toEqual([202, { status: 'deleting' }]);

    const schedules = new HeartbeatSchedules(temporal.client);
    await until(async () => {
      await scheduleHeartbeats({ database: db, schedules, log });
      return (await findUser(db, ada.id)) === null;
    });
    expect(await tracesOf(db, { ...ada, name: email })).toEqual([]);
    expect(await platform.resourcesOf(agentId)).toEqual([]);
    const schedule = temporal.client.schedule.getHandle(heartbeatScheduleId(ada.id));
    await expect(schedule.describe()).rejects.toBeInstanceOf(ScheduleNotFoundError);
    const run = temporal.client.workflow.getHandle(deleteAccountId(ada.id));
    await run.result();
    expect(await ofBob()).toEqual(before);
  });
});
