import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { freshSession } from '../../../api/auth/fresh-session.js';
import { session } from '../../../api/auth/session.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { reply } from '../../../api/http/reply.js';
import { findSession, NO_API_KEYS, serve, signedIn, type TestListener } from './support.js';

const MAX_AGE_MS = 10 * 60_000;

/** Time since the sign-in, in milliseconds. */
let ageMs: number;
let handled: number;
let listener: TestListener;

beforeAll(async () => {
  const dangerous = endpoint({
    method: 'POST',
    path: '/dangerous',
    summary: 'Action that needs a recent sign-in',
    tag: 'Test',
    auth: freshSession,
    responses: { 200: z.strictObject({ by: z.string() }) },
    handler({ caller }) {
      handled += 1;
      return reply(200, { by: caller.user.id });
    },
  });
  const find = async (token: string) => {
    const found = await findSession(token);
    return found && { ...found, signedInAt: new Date(Date.now() - ageMs) };
  };
  const fresh = freshSession.with({ maxAgeMs: MAX_AGE_MS });
  const authenticate = [session.with({ find }), NO_API_KEYS, fresh];
  listener = await serve([dangerous], { authenticate });
});
afterAll(() => listener?.close());
beforeEach(() => {
  [ageMs, handled] = [0, 0];
});

const ask = async (headers: Record<string, string>) => {
  const answer = await listener.call('/dangerous', { method: 'POST', headers });
  return [answer.status, await answer.json()] as const;
};

test('accepts a session with a recent sign-in', async () => {
  ageMs = MAX_AGE_MS / 2;
  expect(await ask(signedIn)).toEqual([200, { by: 'ada' }]);
});

test('refuses a session whose sign-in is too old', { tags: 'attack' }, async () => {
  ageMs = MAX_AGE_MS + 1;
  expect(await ask(signedIn)).toEqual([
    403,
    { error: 'Please sign in again first', code: 'REAUTHENTICATION_REQUIRED' },
  ]);
  expect(handled).toBe(0);
});

test('refuses anonymous callers and foreign sites as elsewhere', async () => {
  expect((await ask({}))[0]).toBe(401);
  const { status } = await listener.call('/dangerous', {
    method: 'POST',
    headers: { ...signedIn, origin: 'https://elsewhere.example' },
  });
  expect(status).toBe(403);
  expect(handled).toBe(0);
});
