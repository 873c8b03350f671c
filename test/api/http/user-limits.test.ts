// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { agentToken } from '../../../api/auth/agent-token.js';
import { apiKey } from '../../../api/auth/api-key.js';
import type { Authentication } from '../../../api/auth/authentication.js';
import { bearer as anyBearer } from '../../../api/auth/bearer.js';
import { internalKey } from '../../../api/auth/internal-key.js';
import { person } from '../../../api/auth/person.js';
import { session } from '../../../api/auth/session.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { reply } from '../../../api/http/reply.js';
import { BadRequestError } from '../../../src/lib/errors.js';
import { DEFAULT_KEY_SCOPES } from '../../../src/types/key-scopes.js';
import { testSecrets } from '../../support/secrets.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import {
  ADA,
  AGENT,
  bearer,
  findSession,
  INTERNAL_KEY,
  postJson,
  serve,
  signedIn,
  type TestListener,
} from './support.js';

const MAX = 3;

/** Owners of keys of the form `<user>-<key>`, and of agents' tokens. */
const holderOf = (key: string) => ({
  keyId: key,
  scopes: DEFAULT_KEY_SCOPES,
  userId: key.split('-')[0] ?? '',
  name: 'Ada',
  email: 'ada@example.com',
  isAdmin: false,
  plan: undefined,
  subscription: 'none' as const,
});

let database: TestDatabase;
let listener: TestListener;
let paid = 0;
let windows = 0;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(async () => {
  await listener?.close();
  paid = 0;
});
afterAll(() => database?.close());

/** Starts a listener with an endpoint that pays, three times a minute for each caller. */
async function payingBy(auth: Authentication): Promise<void> {
  const pay = endpoint({
    method: 'POST',
    path: '/pay',
    summary: 'Pay',
    tag: 'money',
    auth,
    keyScope: 'any',
    idempotent: true,
    limitOfCaller: { name: `pay-${windows++}`, max: MAX, windowMs: 60_000, message: 'Too many' },
    body: z.strictObject({ amount: z.number() }),
    responses: { 200: z.strictObject({ paid: z.number() }) },
    handler: () => reply(200, { paid: ++paid }),
  });
  listener = await serve([pay], {
    authenticate: [
      session.with({ find: findSession }),
      apiKey.with(({ apiKey: key }) => Promise.resolve(holderOf(key))),
      internalKey.with([INTERNAL_KEY]),
      agentToken.with(({ agentToken: token }) =>
        Promise.resolve({ ...AGENT, agentId: token, userId: 'ada' }),
      ),
    ],
    database: database.db,
    secrets: testSecrets(),
  });
}

const pay = async (headers: Record<string, string>) => {
  const answer = await listener.call('/pay', postJson({ amount: 1 }, headers));
  return { status: answer.status, body: await answer.text() };
};

const statusesOf = async (callers: readonly Record<string, string>[]) => {
  const statuses: number[] = [];
  for (const headers of callers) statuses.push((await pay(headers)).status);
  return statuses;
};

test('counts a user once for a limit, over all API keys and the session', async () => {
  await payingBy(person);
  const ofAda = [bearer('ada-1'), bearer('ada-2'), signedIn, bearer('ada-3'), signedIn];
  expect(await statusesOf([...ofAda, bearer('bob-1')])).toEqual([200, 200, 200, 429, 429, 200]);
  expect(paid).toBe(MAX + 1);
});

test('counts a user once for a limit, over all API keys and calls on behalf of the user', async () => {
  await payingBy(anyBearer);
  const { email, id, name } = ADA;
  const headers = { 'x-user-id': id, 'x-user-email': email, 'x-user-name': name };
  const represented = { ...bearer(INTERNAL_KEY), ...headers };
  const callers = [bearer('ada-1'), represented, bearer('ada-2'), represented, bearer('ada-3')];
  expect(await statusesOf(callers)).toEqual([200, 200, 200, 429, 429]);
  expect(await statusesOf(Array(5).fill(bearer(INTERNAL_KEY)))).toEqual(Array(5).fill(200));
});

test("limits a user's requests that end with 400, and no others", async () => {
  const order = endpoint({
    method: 'POST',
    path: '/pay',
    summary: 'Order',
    tag: 'money',
    auth: person,
    keyScope: 'any',
    limitOfRefusals: { name: `refused-${windows++}`, max: MAX, windowMs: 60_000, message: 'Slow' },
    body: z.object({ amount: z.number() }),
    responses: { 200: z.strictObject({ paid: z.number() }) },
    errors: [400],
    handler({ body }) {
      if (body.amount < 0) throw new BadRequestError('The seller refused the input');
      return reply(200, { paid: ++paid });
    },
  });
  listener = await serve([order], {
    authenticate: [
      session.with({ find: findSession }),
      apiKey.with(({ apiKey: key }) => Promise.resolve(holderOf(key))),
    ],
  });
  const statusOf = async (key: string, amount: number) =>
    (await listener.call('/pay', postJson({ amount }, bearer(key)))).status;
  for (let n = 0; n < 2 * MAX; n++) expect(await statusOf('ada-1', 1)).toBe(200);
  for (let n = 0; n < MAX; n++) expect(await statusOf(`ada-${n}`, -1)).toBe(400);
  expect(await statusOf('ada-1', -1)).toBe(429);
  expect(await statusOf('ada-2', 1)).toBe(429);
  expect(await statusOf('bob-1', -1)).toBe(400);
  expect(paid).toBe(2 * MAX);
});

test('counts each agent of a user for itself', async () => {
  await payingBy(agentToken);
  const one = Array<Record<string, string>>(MAX + 1).fill(bearer('one'));
  expect(await statusesOf([...one, bearer('two')])).toEqual([200, 200, 200, 429, 200]);
});

test('pays once for an Idempotency-Key that is repeated with another API key or the session', async () => {
  await payingBy(person);
  const key = { 'idempotency-key': randomUUID() };
  const first = await pay({ ...bearer('ada-1'), ...key });
  expect(await pay({ ...bearer('ada-2'), ...key })).toEqual(first);
  expect(await pay({ ...signedIn, ...key })).toEqual(first);
  expect(paid).toBe(1);
  expect((await pay({ ...bearer('bob-1'), ...key })).body).not.toBe(first.body);
});

test('names the API key rather than its user in the log of requests', async () => {
  await payingBy(person);
  await pay(bearer('ada-7'));
  await expect.poll(() => listener.log.map(({ caller }) => caller)).toContain('api-key:ada-7');
});
