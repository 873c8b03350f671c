// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inviteCodeId, newInviteCode } from '../../../src/accounts/invites/invite-code.js';
import { walletSite, type WalletSite } from '../../money/wallets/support.js';
import { textsOfRows } from '../../platform/database/traces.js';
import { queryRows } from '../../platform/database/catalog.js';
import { newAddress, type CallOptions } from '../../support/http.js';

let site: WalletSite;
beforeAll(async () => {
  site = await walletSite();
});
afterAll(() => site?.close());

const generate = (body: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  site.backend(undefined, 'POST', '/api/invite/generate', { body, headers });
const codeOf = async (body: object = {}): Promise<string> => (await generate(body)).body.code;
/** Sends a code as an anonymous client from an address of its own by default. */
const validate = (code: unknown, { headers, ...options }: CallOptions = {}) =>
  site.backend(undefined, 'POST', '/api/invite/validate', {
    body: { code },
    ...options,
    headers: { authorization: '', ...headers },
  });

test('a code invites as often as it has uses, and is then as unknown as any other', async () => {
  const { body, status } = await generate({ count: 3, uses: 2, expiresInHours: 1 });
  expect(status).toBe(201);
  expect(body.codes).toHaveLength(3);
  expect(body).toMatchObject({ code: body.codes[0], uses: 2 });
  expect(new Set(body.codes).size).toBe(3);
  for (const code of body.codes)
    expect(code).toMatch(/^(?:[0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}$/);
  expect(Math.abs(Date.parse(body.expiresAt) - Date.now() - 3_600_000)).toBeLessThan(60_000);
  for (const remaining of [1, 0]) {
    const { body: used, status } = await validate(body.code);
    expect([status, used]).toEqual([200, { valid: true, remaining, expiresAt: body.expiresAt }]);
  }
  const usedUp = await validate(body.code);
  const unknown = await validate(newInviteCode());
  expect([usedUp.status, usedUp.body]).toEqual([404, { valid: false, error: expect.any(String) }]);
  expect([unknown.status, unknown.body]).toEqual([404, usedUp.body]);
});

test('a code has one use and 30 days by default', async () => {
  const { body } = await generate();
  expect(body.codes).toEqual([body.code]);
  expect(body.uses).toBe(1);
  const days = (Date.parse(body.expiresAt) - Date.now()) / 86_400_000;
  expect(days).toBeCloseTo(30, 1);
});

test('letter case, hyphens and blanks of a code do not count', async () => {
  const code = await codeOf({ uses: 3 });
  for (const written of [
    code.toLowerCase(),
    code.replaceAll('-', ''),
    ` ${code.replaceAll('-', ' ')} `,
  ]) {
    expect((await validate(written)).status).toBe(200);
  }
});

test('an expired code gets the same answer as an unknown code', async () => {
  const code = await codeOf();
  await queryRows(
    site.database.ownerUrl,
    `UPDATE invite_codes SET expires_at = now() WHERE id = '${inviteCodeId(code)}'`,
  );
  const { body, status } = await validate(code);
  expect([status, body.valid]).toEqual([404, false]);
});

test('admits as many of a hundred concurrent requests as there are uses', async () => {
  const code = await codeOf({ uses: 5 });
  const answers = await Promise.all(Array.from({ length: 100 }, () => validate(code)));
  const admitted = answers.filter(({ status }) => status === 200);
  expect(admitted.map(({ body }) => body.remaining).sort()).toEqual([0, 1, 2, 3, 4]);
  expect(answers.filter(({ status }) => status === 404)).toHaveLength(95);
});

test('a repetition with the same Idempotency-Key uses up nothing', async () => {
  const code = await codeOf({ uses: 5 });
  const from = newAddress();
  const headers = { 'idempotency-key': randomUUID() };
  const answers = [];
  for (let n = 0; n < 4; n += 1) answers.push(await validate(code, { from, headers }));
  expect(answers.map(({ body, status }) => [status, body.remaining])).toEqual(
    Array.from({ length: 4 }, () => [200, 4]),
  );
  expect((await validate(code)).body.remaining).toBe(3);
});

test('a repeated request for codes makes none', async () => {
  const headers = { 'idempotency-key': randomUUID() };
  const [first, second] = [await generate({}, headers), await generate({}, headers)];
  expect(second.body).toEqual(first.body);
});

test('only the platform key makes codes', async () => {
  const body = {};
  for (const [authorization, status] of [
    ['', 401],
    ['Bearer wrong', 403],
  ] as const) {
    expect((await generate(body, { authorization })).status).toBe(status);
  }
});

test.each([
  { count: 0 },
  { count: 101 },
  { count: 1.5 },
  { uses: 0 },
  { uses: 1_001 },
  { expiresInHours: 0 },
  { expiresInHours: 8_761 },
  { expiresInHours: '1' },
  { codes: 1 },
])('makes no code for %j', async (body) => {
  const before = await queryRows(site.database.ownerUrl, 'SELECT FROM invite_codes');
  const answer = await generate(body);
  expect([answer.status, answer.text]).toEqual([
    400,
    expect.stringContaining(Object.keys(body)[0] ?? ''),
  ]);
  expect(await queryRows(site.database.ownerUrl, 'SELECT FROM invite_codes')).toEqual(before);
});

test.each([undefined, '', 7, 'x'.repeat(101)])('rejects %j in place of a code', async (code) => {
  const { status, text } = await validate(code);
  expect([status, text]).toEqual([400, expect.stringContaining('code')]);
});

test('limits an address to ten codes a minute, and its site to twenty', async () => {
  const tries = (from: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => validate(newInviteCode(), { from })));
  const refused = async (from: string, count: number) =>
    (await tries(from, count)).filter(({ status }) => status === 429).length;
  expect(await refused('203.0.113.77', 12)).toBe(2);
  const site = '2001:db8:77';
  expect(await refused(`${site}:1::1`, 10)).toBe(0);
  expect(await refused(`${site}:2::1`, 10)).toBe(0);
  expect(await refused(`${site}:3::1`, 1)).toBe(1);
});

test('codes are audited, and neither they nor their digests are in a row or a log', async () => {
  const code = await codeOf({ uses: 2 });
  const from = newAddress();
  await validate(code, { from, headers: { 'idempotency-key': randomUUID() } });
  const audited = await queryRows<{ action: string; actor: string; detail: object }>(
    site.database.ownerUrl,
    `SELECT action, actor, detail FROM audit_log WHERE action LIKE 'invite.%' ORDER BY id DESC LIMIT 2`,
  );
  expect(audited).toEqual([
    { action: 'invite.validate', actor: 'anonymous', detail: { address: from, remaining: 1 } },
    {
      action: 'invite.generate',
      actor: 'operator',
      detail: { count: 1, uses: 2, expiresAt: expect.any(String) },
    },
  ]);
  const rows = (await textsOfRows(site.database.db.asPlatform())).join('\n');
  for (const text of [rows, site.logged.join('\n')]) {
    expect(text).not.toContain(code);
    expect(text).not.toContain(code.replaceAll('-', ''));
  }
  const digest = inviteCodeId(code);
  expect(rows.split(digest)).toHaveLength(2);
  expect(site.logged.join('\n')).not.toContain(digest);
});
