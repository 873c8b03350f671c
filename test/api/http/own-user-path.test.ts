// @module-tag attack
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { apiKey } from '../../../api/auth/api-key.js';
import type { Authentication } from '../../../api/auth/authentication.js';
import { bearer as anyBearer } from '../../../api/auth/bearer.js';
import { internalKey } from '../../../api/auth/internal-key.js';
import { person } from '../../../api/auth/person.js';
import { session } from '../../../api/auth/session.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { errorStatuses } from '../../../api/http/derived-errors.js';
import { reply } from '../../../api/http/reply.js';
import { DEFAULT_KEY_SCOPES } from '../../../src/types/key-scopes.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import {
  ADA,
  bearer,
  findSession,
  INTERNAL_KEY,
  serve,
  signedIn,
  type TestListener,
} from './support.js';

const params = z.object({ userId: z.string() });
const responses = { 200: z.strictObject({ userId: z.string() }) };
let handled = 0;

const at = (path: string, auth: Authentication) =>
  endpoint({
    method: 'GET',
    path,
    summary: 'Show',
    tag: 'Users',
    auth,
    keyScope: 'any',
    params,
    responses,
    handler({ params: { userId } }) {
      handled += 1;
      return reply(200, { userId });
    },
  });
const ENDPOINTS = [
  at('/internal/:userId/shown', internalKey),
  at('/any/:userId/shown', anyBearer),
  at('/person/:userId/shown', person),
];

let database: TestDatabase;
let listener: TestListener;
beforeAll(async () => {
  database = await testDatabase();
  listener = await serve(ENDPOINTS, {
    database: database.db,
    authenticate: [
      session.with({ find: findSession }),
      apiKey.with(({ apiKey: key }) =>
        Promise.resolve({
          keyId: key,
          scopes: DEFAULT_KEY_SCOPES,
          userId: key,
          name: 'Ada',
          email: 'ada@example.com',
          isAdmin: false,
          plan: undefined,
          subscription: 'none' as const,
        }),
      ),
      internalKey.with([INTERNAL_KEY]),
    ],
  });
});
afterAll(async () => {
  await listener?.close();
  await database?.close();
});

const { email, id, name } = ADA;
const forAda = {
  ...bearer(INTERNAL_KEY),
  'x-user-id': id,
  'x-user-email': email,
  'x-user-name': name,
};

test.each([
  ['the internal key for a user', '/internal', forAda],
  ['the internal key for a user', '/any', forAda],
  ['an API key', '/any', bearer('ada')],
  ['a session', '/person', signedIn],
])('%s finds the path of its user alone, at %s', async (_, path, headers) => {
  const before = handled;
  const own = await listener.call(`${path}/ada/shown`, { headers });
  expect([own.status, await own.json()]).toEqual([200, { userId: 'ada' }]);
  const unknown = await listener.call('/no/such/path', { headers });
  for (const other of ['bob', 'ADA', 'ada%20', 'undefined']) {
    const answer = await listener.call(`${path}/${other}/shown`, { headers });
    expect([other, answer.status]).toEqual([other, unknown.status]);
  }
  expect(handled).toBe(before + 1);
});

test('the internal key without a user finds every path', async () => {
  for (const userId of ['ada', 'bob']) {
    const headers = bearer(INTERNAL_KEY);
    const answer = await listener.call(`/internal/${userId}/shown`, { headers });
    expect([answer.status, await answer.json()]).toEqual([200, { userId }]);
  }
});

test('the 404 is documented', () => {
  for (const declared of ENDPOINTS) expect(errorStatuses(declared)).toContain(404);
});
