// @module-tag attack
import { BlockList } from 'node:net';
import { generateKeyPair } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { farcasterEndpoints } from '../../../../api/web/farcaster.js';
import { Database } from '../../../../src/platform/database/database.js';
import { FarcasterTokens } from '../../../../src/accounts/sign-in/farcaster/farcaster-tokens.js';
import {
  KeysUnavailableError,
  QuickAuth,
} from '../../../../src/accounts/sign-in/farcaster/quick-auth.js';
import { TokenGate } from '../../../../src/accounts/token-gating/token-gate.js';
import { queryRows } from '../../../platform/database/catalog.js';
import { HTTP_SETTINGS, serve, type TestListener } from '../../../api/http/support.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../../support/chain/chain.js';
import { call } from '../../../support/http.js';
import { testDatabase, type TestDatabase } from '../../../support/postgres.js';
import { DOMAIN, startQuickAuth, type QuickAuthStub } from '../../../support/quick-auth.js';

let database: TestDatabase;
let chain: TestChain;
let server: QuickAuthStub;
let tokens: FarcasterTokens;
let listener: TestListener;
/** A Farcaster id that no earlier test has used. */
let fid = 0;

const quickAuthOf = (stub: QuickAuthStub) => new QuickAuth({ server: stub.url, domain: DOMAIN });

beforeAll(async () => {
  [database, chain, server] = await Promise.all([testDatabase(), testChain(), startQuickAuth()]);
  tokens = new FarcasterTokens(database.db);
  const platformToken = { address: PATH_USD, rpcUrl: chain.rpcUrl, chainId: CHAIN_ID };
  const farcaster = { quickAuth: quickAuthOf(server), tokens };
  const tokenGate = new TokenGate({ platformToken: { ...platformToken, threshold: '1' } });
  const trustedProxies = new BlockList();
  trustedProxies.addAddress('127.0.0.1');
  listener = await serve(farcasterEndpoints({ farcaster, tokenGate }), {
    settings: { ...HTTP_SETTINGS, trustedProxies },
  });
});
afterAll(() =>
  Promise.all([listener?.close(), server?.close(), chain?.close(), database?.close()]),
);
beforeEach(() => {
  fid += 1;
});

const post = (path: 'verify' | 'refresh', body: unknown) =>
  call(listener.url, 'POST', `/api/auth/farcaster/${path}`, { body });
const newToken = async () => (await tokens.issue({ fid, address: undefined })).token;
const rows = () =>
  queryRows<Record<string, unknown>>(
    database.ownerUrl,
    `SELECT * FROM farcaster_tokens WHERE fid = ${fid}`,
  );
const age = (interval: string) =>
  queryRows(
    database.ownerUrl,
    `UPDATE farcaster_tokens SET expires_at = expires_at - interval '${interval}',
       ends_at = ends_at - interval '${interval}' WHERE fid = ${fid}`,
  );
const HOUR_MS = 3_600_000;

describe.each(['verify', 'refresh'])('GET %s', (path) => {
  test('a GET describes the POST', async () => {
    const { status, body } = await call(listener.url, 'GET', `/api/auth/farcaster/${path}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      endpoint: `/api/auth/farcaster/${path}`,
      method: 'POST',
      description: expect.any(String),
      body: { token: expect.any(String), gate: expect.any(String) },
    });
  });
});

describe('verify', () => {
  test('exchanges a Quick Auth token for a platform token, which is then refreshed', async () => {
    const verified = await post('verify', { token: await server.token(fid) });
    expect(verified.status).toBe(200);
    const shape = { success: true, fid, token: expect.any(String), expiresAt: expect.any(String) };
    expect(verified.body).toEqual(shape);
    expect(verified.headers.get('cache-control')).toBe('no-store');
    const lasts = Date.parse(verified.body.expiresAt) - Date.now();
    expect(lasts).toBeGreaterThan(HOUR_MS - 5 * 60_000);
    expect(lasts).toBeLessThan(HOUR_MS + 60_000);
    const refreshed = await post('refresh', { token: verified.body.token });
    expect([refreshed.status, refreshed.body]).toEqual([200, shape]);
    expect(refreshed.body.token).not.toBe(verified.body.token);
    expect((await post('refresh', { token: refreshed.body.token })).status).toBe(200);
  });

  test('verifies without signing in', async () => {
    const { headers } = await post('verify', { token: await server.token(fid) });
    expect(headers.get('set-cookie')).toBeNull();
  });

  test('checks for the platform token only in the wallet that the proof names', async () => {
    const { address } = chain.account(5);
    const token = await server.token(fid, { claims: { address } });
    const verified = await post('verify', { token, gate: true });
    expect(verified.body.tokenGating).toMatchObject({
      verified: true,
      holds: true,
      proven: true,
      address,
    });
    const refreshed = await post('refresh', { token: verified.body.token, gate: true });
    expect(refreshed.body.tokenGating).toEqual(verified.body.tokenGating);
    const another = { token: await server.token(fid), gate: true, address };
    expect((await post('verify', another)).body.tokenGating).toBeNull();
  });

  test('keeps a token valid if the chain was unavailable', async () => {
    const address = `0x${'1'.repeat(40)}` as const;
    const { token } = await tokens.issue({ fid, address });
    const platformToken = { address: PATH_USD, rpcUrl: undefined, chainId: 1, threshold: '1' };
    const away = await serve(
      farcasterEndpoints({
        farcaster: { quickAuth: quickAuthOf(server), tokens },
        tokenGate: new TokenGate({ platformToken }),
      }),
    );
    try {
      const body = { token, gate: true };
      const path = '/api/auth/farcaster/refresh';
      expect((await call(away.url, 'POST', path, { body })).status).toBe(503);
      expect((await post('refresh', { token })).status).toBe(200);
    } finally {
      await away.close();
    }
  });

  test.each(['verify', 'refresh'] as const)('answers %s without a token with 400', async (path) => {
    expect((await post(path, {})).status).toBe(400);
    expect((await post(path, { token: '' })).status).toBe(400);
    expect((await post(path, { token: 7 })).status).toBe(400);
  });

  test.each<[string, () => Promise<string>]>([
    ['not a token', () => Promise.resolve('token')],
    ['one of another server', () => server.token(fid, { claims: { iss: 'https://evil.example' } })],
    ['one for another domain', () => server.token(fid, { claims: { aud: 'evil.example' } })],
    ['one that has expired', () => server.token(fid, { claims: { exp: ago(120) } })],
    ['one that never expires', () => server.token(fid, { claims: { exp: undefined } })],
    ['one of the future', () => server.token(fid, { claims: { nbf: ago(-300) } })],
    ['one of nobody', () => server.token(fid, { claims: { sub: undefined } })],
    ['one of a name', () => server.token(fid, { claims: { sub: 'ada' } })],
    ['one of no number', () => server.token(fid, { claims: { sub: -1.5 } })],
    ['one with a key of the same name', async () => server.token(fid, { key: await otherKey() })],
    ['one signed by nobody', () => unsigned(fid)],
    ['one with the public key as a secret', () => withPublicKeyAsSecret(fid)],
    ['one that was changed', async () => changed(await server.token(fid))],
  ])('verify refuses %s', async (_, token) => {
    const { status, body } = await post('verify', { token: await token() });
    expect([status, body]).toEqual([401, { error: 'Invalid Farcaster token' }]);
    expect(await rows()).toEqual([]);
  });

  test('accepts a number that is written as text', async () => {
    const token = await server.token(fid, { claims: { sub: String(fid) } });
    expect((await post('verify', { token })).body.fid).toBe(fid);
  });
});

const ago = (seconds: number) => Math.floor(Date.now() / 1_000) - seconds;
const otherKey = async () => (await generateKeyPair('RS256')).privateKey;
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

async function unsigned(of: number): Promise<string> {
  const [, payload = ''] = (await server.token(of)).split('.');
  return `${base64({ alg: 'none', kid: '1' })}.${payload}.`;
}

function withPublicKeyAsSecret(of: number): Promise<string> {
  const key = Buffer.from(server.keys[0]?.n ?? '', 'base64url');
  return server.token(of, { key, header: { alg: 'HS256' } });
}

function changed(token: string): string {
  const [header = '', , signature = ''] = token.split('.');
  const payload = { iss: server.url, aud: DOMAIN, sub: fid + 1, exp: ago(-3_600) };
  return [header, base64(payload), signature].join('.');
}

describe('the keys of the Quick Auth server', () => {
  test('keys are requested once, even for tokens with made-up key names', async () => {
    const stub = await startQuickAuth();
    try {
      const quickAuth = quickAuthOf(stub);
      const forged = Array.from({ length: 20 }, (_, n) =>
        stub.token(fid, { header: { kid: `made-up-${n}` } }),
      );
      for (const token of await Promise.all(forged)) {
        expect(await quickAuth.verify(token)).toBeUndefined();
      }
      expect(await quickAuth.verify(await stub.token(fid))).toEqual({ fid, address: undefined });
      expect(stub.asked()).toBe(1);
    } finally {
      await stub.close();
    }
  });

  test.each<[number, string]>([
    [500, '{}'],
    [302, '{"keys":[]}'],
    [200, 'nothing of the kind'],
    [200, JSON.stringify({ keys: [], filler: 'x'.repeat(100_000) })],
  ])('keys are unavailable after an answer of %d with %.20s', async (status, body) => {
    const stub = await startQuickAuth();
    try {
      stub.answer(status, body);
      const refused = quickAuthOf(stub).verify(await stub.token(fid));
      await expect(refused).rejects.toThrow(KeysUnavailableError);
    } finally {
      await stub.close();
    }
  });

  test('verify answers 503 while the key server is unavailable', async () => {
    const stub = await startQuickAuth();
    const token = await stub.token(fid);
    await stub.close();
    const farcaster = { quickAuth: quickAuthOf(stub), tokens };
    const tokenGate = new TokenGate({ platformToken: undefined });
    const away = await serve(farcasterEndpoints({ farcaster, tokenGate }));
    try {
      const path = '/api/auth/farcaster/verify';
      const { status, body } = await call(away.url, 'POST', path, { body: { token } });
      expect([status, body]).toEqual([503, { error: 'Farcaster is unavailable: retry later' }]);
    } finally {
      await away.close();
    }
  });
});

describe('a platform token', () => {
  test('a platform token is stored as a hash', async () => {
    const token = await newToken();
    expect(JSON.stringify(await rows())).not.toContain(token);
    expect(JSON.stringify(await rows())).not.toContain(token.slice(24));
  });

  test('refreshing a used token again revokes its successor too', async () => {
    const first = await newToken();
    const second = (await tokens.refresh(first))?.token ?? '';
    expect(await tokens.find(second)).toMatchObject({ fid });
    expect(await tokens.refresh(first)).toBeUndefined();
    expect(await tokens.find(second)).toBeUndefined();
    expect(await tokens.refresh(second)).toBeUndefined();
    expect(await rows()).toEqual([]);
  });

  test('showing a used token revokes its whole chain', async () => {
    const first = await newToken();
    const second = (await tokens.refresh(first))?.token ?? '';
    expect(await tokens.find(first)).toBeUndefined();
    expect(await tokens.find(second)).toBeUndefined();
  });

  test('a reused token leaves other proofs of the account valid', async () => {
    const [first, other] = [await newToken(), await newToken()];
    await tokens.refresh(first);
    await tokens.refresh(first);
    expect(await tokens.find(other)).toMatchObject({ fid });
  });

  test('a token is refreshed once: one of 50 concurrent attempts in two processes wins', async () => {
    const elsewhere = new Database(database.url, { maxConnections: 5 });
    try {
      const processes = [tokens, new FarcasterTokens(elsewhere)];
      const token = await newToken();
      const tries = processes.flatMap((process) =>
        Array.from({ length: 25 }, () => process.refresh(token)),
      );
      const won = (await Promise.all(tries)).filter((made) => made !== undefined);
      expect(won).toHaveLength(1);
    } finally {
      await elsewhere.close();
    }
  });

  test('a token expires after an hour', async () => {
    const token = await newToken();
    await age('61 minutes');
    expect(await tokens.find(token)).toBeUndefined();
    expect(await tokens.refresh(token)).toBeUndefined();
  });

  test('a token is never refreshed beyond 30 days after the proof', async () => {
    const first = await newToken();
    await queryRows(
      database.ownerUrl,
      `UPDATE farcaster_tokens SET ends_at = now() + interval '1 minute' WHERE fid = ${fid}`,
    );
    const second = await tokens.refresh(first);
    expect((second?.expiresAt.getTime() ?? 0) - Date.now()).toBeLessThan(10 * 60_000);
    await age('2 minutes');
    expect(await tokens.refresh(second?.token ?? '')).toBeUndefined();
  });

  test('an account keeps its 20 latest tokens', async () => {
    const oldest = await newToken();
    for (let n = 0; n < 20; n++) await newToken();
    expect(await rows()).toHaveLength(20);
    expect(await tokens.find(oldest)).toBeUndefined();
  });

  test.each(['', 'x'.repeat(64), 'x'.repeat(63), `${'x'.repeat(64)}\n`])(
    'a token cannot be %j',
    async (token) => {
      expect(await tokens.find(token)).toBeUndefined();
      expect(await tokens.refresh(token)).toBeUndefined();
    },
  );
});
