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

/** Replaces scrypt's work by a cheap hash: the test counts only the requested cost. */
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
/** Equivalent scrypt costs N, r and p that OWASP recommends. */
const ASKED = [
  [2 ** 17, 8, 1],
  [2 ** 16, 8, 2],
  [2 ** 15, 8, 3],
  [2 ** 14, 8, 5],
  [2 ** 13, 8, 10],
];

/** Returns the sum of N·r·p over the scrypt calls that `doing` makes. */
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

test('a new hash has the scrypt cost that OWASP recommends', async () => {
  const [scheme, ...cost] = (await hashPassword(PASSWORD, SITE)).split('$');
  expect(scheme).toBe('scrypt');
  expect(ASKED).toContainEqual(cost.slice(0, 3).map(Number));
});

test('rejecting a wrong password costs the same for an unknown account, a new hash and an old hash', async () => {
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
