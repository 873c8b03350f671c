import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../support/random.js';
import { freePort } from '../../dev/ports.js';
import { builtProgram } from '../../dev/root.js';
import { Meter } from '../../src/ai/usage/meter.js';
import { createApiKey } from '../../src/accounts/accounts/api-keys.js';
import { grantPlan } from '../../src/accounts/accounts/subscriptions.js';
import { call, send } from '../support/http.js';
import { keptLog, testEnvironment } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import {
  completion,
  sendJson,
  startProvider,
  type ProviderRequest,
  type ProviderStub,
} from '../support/provider-stub.js';
import { asOwner, rowsOf, unbalanced } from '../ai/usage/ledger.js';

const CALLS = 1_000;
/** Number of the first call, above the estimated input tokens of such short calls. */
const FIRST = 1_000;
const AT_ONCE = 100;
/** Answered calls after which the process is killed. */
const KILLED_AFTER = 400;
const USERS = 4;
const PATH = '/v1/chat/completions';

const random = new Random(Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31)));

let database: TestDatabase;
let provider: ProviderStub;
let folder: string;
let env: NodeJS.ProcessEnv;
let api: ChildProcess | undefined;
let output = '';

beforeAll(async () => {
  database = await testDatabase();
  provider = await startProvider();
  folder = await mkdtemp(path.join(tmpdir(), 'aps-ai-kill-'));
  const [web, backend, agents] = [await freePort(), await freePort(), await freePort()];
  const settings = testEnvironment({
    DATABASE_URL: database.url,
    INTERNAL_API_KEY: randomBytes(16).toString('hex'),
    OPENAI_BASE_URL: provider.baseUrl,
    OPENAI_API_KEY: provider.apiKey,
    DATA_DIR: folder,
    WEB_PORT: String(web),
    BACKEND_PORT: String(backend),
    AGENT_AI_PORT: String(agents),
    // A call needs neither agents nor workflows.
    AGENT_AI_HOST: '127.0.0.1',
    DOCKER_HOST: 'unix:///nowhere/docker.sock',
    TEMPORAL_ADDRESS: '127.0.0.1:1',
  });
  env = { ...process.env, ...settings };
});

afterAll(async () => {
  await kill('SIGKILL');
  await provider?.close();
  await database?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Starts the product's API and waits until it serves. */
async function start(): Promise<void> {
  const program = builtProgram('api', 'main.js');
  api = fork(program, { env, execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  // The last 20,000 characters, shown when a test fails.
  const keep = (chunk: Buffer) => (output = (output + String(chunk)).slice(-20_000));
  api.stdout?.on('data', keep);
  api.stderr?.on('data', keep);
  const [said] = await Promise.race([once(api, 'message'), once(api, 'exit')]);
  if (said?.ready !== true) throw new Error(`the API did not start:\n${output}`);
}

async function kill(signal: NodeJS.Signals): Promise<void> {
  if (!api || api.exitCode !== null || api.signalCode !== null) return;
  const ended = once(api, 'exit');
  api.kill(signal);
  await ended;
}

/** Answers a call with its number (its content) as the number of input tokens. */
async function answerAsAsked(
  { body, path: asked }: ProviderRequest,
  response: ServerResponse,
): Promise<void> {
  if (asked.endsWith('/models')) return sendJson(response, 404, {});
  await delay(random.below(20));
  const number = Number(body.messages[0].content);
  const usage = { prompt_tokens: number, completion_tokens: 2, total_tokens: number + 2 };
  if (body.stream !== true) return sendJson(response, 200, { ...completion('yes'), usage });
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'stub' };
  const event = (data: object) => `data: ${JSON.stringify({ ...chunk, ...data })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const choice = { index: 0, finish_reason: null };
  response.write(event({ choices: [{ ...choice, delta: { role: 'assistant', content: 'yes' } }] }));
  await delay(random.below(5));
  response.write(event({ choices: [{ ...choice, delta: {}, finish_reason: 'stop' }] }));
  response.end(`${event({ choices: [], usage })}data: [DONE]\n\n`);
  return undefined;
}

const url = (port: string) => `http://127.0.0.1:${env[port]}`;

/**
 * Registers a user with a quota.
 *
 * @returns an API key of the user.
 */
async function newKey(): Promise<string> {
  const email = `${randomUUID()}@example.com`;
  const registered = await call(url('WEB_PORT'), 'POST', '/api/register', {
    body: { email, password: 'a-password-of-tests' },
  });
  const userId: string = registered.body.id;
  await grantPlan(database.db, userId, 'label', { actor: 'operator', requestId: 'test' });
  const owner = { userId, requestId: randomUUID() };
  return (await createApiKey(database.db, owner, { name: 'test', site: 'here' })).key;
}

/**
 * Makes a call.
 *
 * @returns true if the answer was complete.
 */
async function ask(number: number, key: string): Promise<boolean> {
  const stream = number % 2 === 0;
  try {
    const response = await send(url('BACKEND_PORT'), 'POST', PATH, {
      headers: { authorization: `Bearer ${key}` },
      body: { messages: [{ role: 'user', content: String(number) }], max_tokens: 50, stream },
    });
    const text = await response.text();
    return response.status === 200 && (!stream || text.endsWith('data: [DONE]\n\n'));
  } catch {
    return false; // connection refused, or the answer was cut off
  }
}

/**
 * Recovers the journal as another process does when the killed one is silent for long and its
 * reservations have expired.
 */
async function takeOver(journal: string): Promise<void> {
  await asOwner(
    database.ownerUrl,
    `UPDATE quota_reservations SET expires_at = expires_at - interval '5 minutes'`,
  );
  const { log } = keptLog();
  const other = new Meter({ database: database.db, folder: journal, log, signOfLifeMs: 50 });
  await expect.poll(() => readdir(journal)).toEqual([]);
  const held = () => rowsOf(database.db, 'SELECT FROM quota_reservations');
  await expect.poll(held).toEqual([]);
  await other.close();
}

test('an API killed in the middle of 1,000 calls loses no usage and holds no quota', async () => {
  console.log(`calls with KILL_SEED=${random.seed}`);
  provider.behave(answerAsAsked);
  await start();
  const keys = await Promise.all(Array.from({ length: USERS }, newKey));
  const answered: number[] = [];
  let next = FIRST;
  const askInTurn = async () => {
    while (next < FIRST + CALLS) {
      const number = next++;
      const key = keys[number % keys.length] ?? '';
      if (await ask(number, key)) answered.push(number);
      if (answered.length === KILLED_AFTER) api?.kill('SIGKILL');
      // The remaining calls follow after the restart.
      if (api?.killed === true) return;
    }
  };
  const everybody = () => Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
  await everybody();
  expect(answered.length).toBeGreaterThanOrEqual(KILLED_AFTER);
  expect(next).toBeLessThan(FIRST + CALLS);

  const journal = path.join(folder, 'usage-journal');
  await takeOver(journal);
  await start();

  await everybody();
  await kill('SIGTERM');
  const rows = await rowsOf<{ number: number }>(
    database.db,
    'SELECT input_tokens AS number FROM usage_logs',
  );
  const numbers = rows.map(({ number }) => number).filter((number) => number >= FIRST);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(answered.filter((number) => !numbers.includes(number))).toEqual([]);
  // Interrupted calls may be recorded or estimated, but nothing else.
  expect(rows.length - answered.length).toBeLessThanOrEqual(AT_ONCE);
  expect(answered.length).toBeGreaterThanOrEqual(CALLS - AT_ONCE);
  expect(await rowsOf(database.db, 'SELECT FROM quota_reservations')).toEqual([]);
  expect(await unbalanced(database.db)).toEqual([]);
  expect(await readdir(journal)).toEqual([]);
});

test('a stream cut off by a kill is counted by the output that was sent', async () => {
  const piece = { index: 0, delta: { content: 'word ' }, finish_reason: null };
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'stub' };
  const event = `data: ${JSON.stringify({ ...chunk, choices: [piece] })}\n\n`;
  provider.behave((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let count = 0; count < 20; count++) response.write(event);
  });
  await start();
  const key = await newKey();
  const content = 'a question of some length '.repeat(40);
  const response = await send(url('BACKEND_PORT'), 'POST', PATH, {
    headers: { authorization: `Bearer ${key}` },
    body: { messages: [{ role: 'user', content }], max_tokens: 50, stream: true },
  });
  let text = '';
  const seen = (async () => {
    for await (const part of response.body ?? []) text += Buffer.from(part).toString();
  })().catch(() => undefined); // cut off
  await expect.poll(() => text.split('word ').length).toBe(21);
  const journal = path.join(folder, 'usage-journal');
  const noted = async () => {
    const [name = ''] = (await readdir(journal)).filter((file) => file.endsWith('.open'));
    return readFile(path.join(journal, name), 'utf8');
  };
  await expect.poll(noted).toContain('"outputTokens":25');
  await kill('SIGKILL');
  await seen;
  const before = await rowsOf(database.db, 'SELECT FROM usage_logs');
  await takeOver(journal);
  const rows = () =>
    rowsOf<{ input: number; output: number }>(
      database.db,
      `SELECT input_tokens AS input, output_tokens AS output FROM usage_logs
        ORDER BY id DESC LIMIT 1`,
    );
  const count = async () => (await rowsOf(database.db, 'SELECT FROM usage_logs')).length;
  expect(await count()).toBe(before.length + 1);
  const [counted] = await rows();
  // A fourth of the sent bytes, which is more than the number of pieces.
  expect(counted?.output).toBe(25);
  expect(counted?.input).toBeGreaterThan(content.length / 4);
  expect(await unbalanced(database.db)).toEqual([]);
});
