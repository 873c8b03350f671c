import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { DatabaseError } from 'sequelize';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { backendEndpoints, createBackend } from '../../api/backend/backend.js';
import type { Endpoint } from '../../api/http/endpoint.js';
import type { Listening } from '../../api/http/server.js';
import { anonymous } from '../../api/auth/anonymous.js';
import { SESSION_COOKIE } from '../../api/auth/session-cookie.js';
import { createWeb, webEndpoints } from '../../api/web/web.js';
import { Database } from '../../src/platform/database/database.js';
import { isDatabaseAway } from '../../src/platform/database/database-away.js';
import { databaseAlone } from '../support/dependencies.js';
import { call, type Answer } from '../support/http.js';

const url = 'postgres://nobody@127.0.0.1:1/nothing';
const INTERNAL_KEY = 'internal-key-of-this-test';

let database: Database;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let backend: Listening;

beforeAll(async () => {
  database = new Database(url);
  alone = await databaseAlone({ db: database, url }, undefined, { INTERNAL_API_KEY: INTERNAL_KEY });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await Promise.all([web?.close(), backend?.close()]);
  await alone?.close();
  await database?.close();
});

const token = randomBytes(32).toString('base64url');
const SESSION = { cookie: `${SESSION_COOKIE}=${token}` };
const FROM_WEB = {
  authorization: `Bearer ${INTERNAL_KEY}`,
  'x-user-id': 'ada',
  'x-user-email': 'ada@example.com',
};

/** Calls an endpoint with placeholders as its parameters. */
function ask(base: string, { method, path }: Endpoint, headers: Record<string, string>) {
  return call(base, method, path.replaceAll(/:\w+/g, '00000000-0000-4000-8000-000000000000'), {
    headers: { 'idempotency-key': token, ...headers },
    ...(method !== 'GET' && { body: {} }),
  });
}

const isAway = ({ body, headers, status }: Answer) =>
  status === 503 &&
  headers.get('retry-after') === '5' &&
  body?.error === 'The database does not answer: retry later';

test('every endpoint of a signed-in user is 503 with Retry-After without PostgreSQL', async () => {
  const endpoints = webEndpoints(alone.dependencies).filter(({ auth }) => auth !== anonymous);
  expect(endpoints.length).toBeGreaterThan(50);
  for (const each of endpoints) {
    const answer = await ask(web.url, each, SESSION);
    expect(isAway(answer), `${each.method} ${each.path}: ${answer.status} ${answer.text}`).toBe(
      true,
    );
  }
});

test.each([
  ['/api/register', { email: 'ada@example.com', password: 'a long password' }],
  ['/api/auth/login', { email: 'ada@example.com', password: 'a long password' }],
  ['/api/auth/forgot-password', { email: 'ada@example.com' }],
  ['/api/auth/reset-password', { token, password: 'a long password' }],
])('%s is 503 with Retry-After without PostgreSQL', async (path, body) => {
  expect(await call(web.url, 'POST', path, { body })).toSatisfy(isAway);
});

test('no backend endpoint is 500 without PostgreSQL', async () => {
  let away = 0;
  for (const each of backendEndpoints(alone.dependencies)) {
    const answer = await ask(backend.url, each, FROM_WEB);
    if (isAway(answer)) away++;
    // The status that the contract defines for an engine that does not answer.
    else if (answer.body?.error !== 'Docker is not available') {
      expect(answer.status, `${each.method} ${each.path}: ${answer.text}`).not.toBe(500);
    }
  }
  expect(away).toBeGreaterThan(30);
});

test('a broken connection and a server that stops count as away, and a refused statement does not', () => {
  const failed = (code?: string) => {
    const parent = code === undefined ? new Error('Connection terminated') : serverError(code);
    return new DatabaseError(Object.assign(parent, { sql: '' }));
  };
  expect(isDatabaseAway(failed())).toBe(true);
  for (const code of ['57P01', '57P03', '08006', '53300']) {
    expect(isDatabaseAway(failed(code))).toBe(true);
  }
  for (const code of ['55P03', '57014', '23505', '53200']) {
    expect(isDatabaseAway(failed(code))).toBe(false);
  }
  expect(isDatabaseAway(new Error('another'))).toBe(false);
});

function serverError(code: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError('refused', 0, 'error'), { code });
}
