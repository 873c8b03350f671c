// @module-tag attack
import type * as crypto from 'node:crypto';
import { createHash, scrypt } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import {
  comparePassword,
  hashPassword,
  DUMMY_HASH,
} from '../../../src/accounts/accounts/password.js';

type Done = (error: Error | null, key: Buffer) => void;

/** In the place of its work, which counts alone here. */
const keyOf = (password: string, salt: Buffer) =>
  createHash('sha256').update(password).update(salt).digest();

vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof crypto>()),
  scrypt: vi.fn((password: string, salt: Buffer, _bytes: number, _options: unknown, done: Done) =>
    done(null, keyOf(password, salt)),
  ),
}));

const SITE = 'here';
const PASSWORD = 'correct horse';
/** What OWASP asks for, each line equal to the others. */
const ASKED = [
  [2 ** 17, 8, 1],
  [2 ** 16, 8, 2],
  [2 ** 15, 8, 3],
  [2 ** 14, 8, 5],
  [2 ** 13, 8, 10],
];

/** The N·r·p of all that scrypt is told to do meanwhile. */
async function workOf(doing: () => Promise<unknown>): Promise<number> {
  const calls = vi.mocked(scrypt).mock.calls as unknown as [unknown, unknown, unknown, Options][];
  const before = calls.length;
  await doing();
  return calls.slice(before).reduce((sum, [, , , { N, r, p }]) => sum + N * r * p, 0);
}

interface Options {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

const guess = (stored: string) => workOf(() => comparePassword('a guess', stored, SITE));

test('a new hash takes the work that OWASP asks for', async () => {
  const [scheme, ...cost] = (await hashPassword(PASSWORD, SITE)).split('$');
  expect(scheme).toBe('scrypt');
  expect(ASKED).toContainEqual(cost.slice(0, 3).map(Number));
});

test('a wrong password takes the same work without an account, by a new hash and by an old one', async () => {
  const salt = Buffer.alloc(16, 1);
  const [saltText, keyText] = [salt, keyOf(PASSWORD, salt)].map((part) =>
    part.toString('base64url'),
  );
  const oldHash = `scrypt$32768$8$1$${saltText}$${keyText}`;
  const withoutAccount = await guess(DUMMY_HASH);
  expect(withoutAccount).toBe(await workOf(() => hashPassword(PASSWORD, SITE)));
  expect(await guess(await hashPassword(PASSWORD, SITE))).toBe(withoutAccount);
  expect(await guess(oldHash)).toBe(withoutAccount);
  expect((await comparePassword(PASSWORD, oldHash, SITE)).matches).toBe(true);
});
