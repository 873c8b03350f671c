// @module-tag attack
import { createHmac, createPublicKey, randomBytes } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EventSigner, type EventClaims } from '../../../dev/security-events/event-signer.js';
import { EVENT_TYPES } from '../../../src/accounts/security-events/event-types.js';
import {
  verifyEventToken,
  type EventTrust,
} from '../../../src/accounts/security-events/event-tokens.js';
import { ProviderKeys } from '../../../src/accounts/security-events/provider-keys.js';
import { claimsOf, CLIENT_ID, keysServer, timesAsked, type KeysServer } from './support.js';

let provider: KeysServer;
let signer: EventSigner;
let trust: EventTrust;
let claims: EventClaims;

beforeAll(async () => {
  provider = await keysServer();
  [signer] = provider.signers as [EventSigner];
});
afterAll(() => provider?.stop());
beforeEach(() => {
  const { configurationUrl, issuer } = provider;
  const clientIds = [CLIENT_ID, 'another.apps.example.com'];
  trust = { issuer, clientIds, keys: new ProviderKeys({ configurationUrl }), retentionDays: 365 };
  claims = claimsOf(provider, 'sessions-revoked', { sub: '10769150350006150715113082367' });
  provider.asked.length = 0;
});

const verify = (token: string) => verifyEventToken(token, trust);

async function refused(token: string, err: string): Promise<void> {
  await expect(verify(token)).rejects.toMatchObject({ status: 400, err, facts: { err } });
}

describe('tokens of the provider', () => {
  test('reads event and subject from a token', async () => {
    const reported = { sub: '1', email: 'ada@example.com' };
    const token = await signer.sign({
      ...claimsOf(provider, 'account-disabled', reported, { reason: 'hijacking' }),
      iat: 4_000_000_000,
      jti: '756E69717565',
    });
    expect(await verify(token)).toEqual({
      jti: '756E69717565',
      issuedAt: 4_000_000_000,
      events: [{ type: EVENT_TYPES['account-disabled'], ...reported, reason: 'hijacking' }],
    });
  });

  test('accepts every spelling of issuer and audience, with any exp', async () => {
    const iss = provider.issuer;
    for (const change of [
      { iss },
      { iss: `${iss}/` },
      { aud: [CLIENT_ID] },
      { aud: ['a stranger', 'another.apps.example.com'] },
      { exp: 2 },
    ]) {
      await expect(verify(await signer.sign({ ...claims, ...change }))).resolves.toBeDefined();
    }
  });

  test('accepts a token signed with ES256', async () => {
    const other = await EventSigner.create('ES256');
    provider.signers = [signer, other];
    await expect(verify(await other.sign(claims))).resolves.toMatchObject({ jti: claims.jti });
    provider.signers = [signer];
  });

  test('ignores the subject of an account of another issuer', async () => {
    const type = EVENT_TYPES['sessions-revoked'];
    const subject = { iss: 'https://other.example.com', sub: '1', email: 'ada@example.com' };
    const token = await signer.sign({ ...claims, events: { [type]: { subject } } });
    expect((await verify(token)).events).toEqual([{ type }]);
  });

  const own = { format: 'iss_sub', sub: '7' };
  const email = { format: 'email', email: 'ada@example.com' };
  test.each([
    ['sub_id', { sub_id: own }, { sub: '7' }],
    ['an address in sub_id', { sub_id: email }, { email: 'ada@example.com' }],
    [
      'aliases',
      { sub_id: { format: 'aliases', identifiers: [email, own, { ...own, sub: '8' }] } },
      { sub: '7', email: 'ada@example.com' },
    ],
    ['the user of a complex subject', { sub_id: { format: 'complex', user: own } }, { sub: '7' }],
    ['sub', { sub: '9' }, { sub: '9' }],
    ['sub_id before sub', { sub_id: own, sub: '9' }, { sub: '7' }],
    [
      'sub_id of another issuer',
      { sub_id: { ...own, iss: 'https://other.example.com' }, sub: '9' },
      {},
    ],
  ])('reads the subject of an event without a subject from %s', async (_, change, subject) => {
    const type = EVENT_TYPES['sessions-revoked'];
    const token = await signer.sign({ ...claims, events: { [type]: {} }, ...change });
    expect((await verify(token)).events).toEqual([{ type, ...subject }]);
  });

  test('prefers the subject of the event to sub_id', async () => {
    const type = EVENT_TYPES['sessions-revoked'];
    const events = { [type]: { subject: { sub: '1' } } };
    const token = await signer.sign({ ...claims, events, sub_id: own });
    expect((await verify(token)).events).toEqual([{ type, sub: '1' }]);
  });

  test('replaces text that cannot be stored', async () => {
    const subject = { sub: 'a\0b', email: '\ud800@example.com' };
    const type = EVENT_TYPES['sessions-revoked'];
    const token = await signer.sign({ ...claims, events: { [type]: { subject } } });
    const [reported] = (await verify(token)).events;
    expect(reported).toEqual({ type, sub: 'a\ufffdb', email: '\ufffd@example.com' });
  });
});

describe('tokens that could act twice', () => {
  const daysAgo = (days: number) => Math.floor(Date.now() / 1_000) - days * 24 * 60 * 60;

  test('refuses a token older than received tokens are remembered, and accepts a younger one', async () => {
    for (const iat of [0, 1, daysAgo(366)]) {
      await refused(await signer.sign({ ...claims, iat }), 'invalid_request');
    }
    const younger = await signer.sign({ ...claims, iat: daysAgo(364) });
    await expect(verify(younger)).resolves.toBeDefined();
  });

  test('refuses a token without a time of issue', async () => {
    for (const iat of [undefined, null, '1508184845', -1, [], true]) {
      await refused(await signer.sign({ ...claims, iat }), 'invalid_request');
    }
  });

  test('refuses an id that is too long or cannot be stored as it is', async () => {
    for (const jti of ['x'.repeat(513), 'é'.repeat(513), 'a\0b', '\ud800', 7, '']) {
      await refused(await signer.sign({ ...claims, jti }), 'invalid_request');
    }
    for (const jti of ['x'.repeat(512), '\u{1f600}'.repeat(512)]) {
      await expect(verify(await signer.sign({ ...claims, jti }))).resolves.toMatchObject({ jti });
    }
  });
});

describe('tokens refused without a request to the provider', () => {
  afterEach(() => expect(provider.asked).toEqual([]));

  test.each([
    '',
    ' ',
    'x',
    'a.b.c',
    '..',
    '{"iss":"x"}',
    'e30.e30',
    'e30.W10.',
    'bm9uZQ.e30.AA',
    `e30.${'A'.repeat(60_000)}.AA`,
  ])('refuses text that is no token: %#', (token) => refused(token, 'invalid_request'));

  test('refuses another issuer', async () => {
    for (const iss of ['https://evil.example.com', `${provider.issuer}//`, 7, null, undefined]) {
      await refused(await signer.sign({ ...claims, iss }), 'invalid_issuer');
    }
    await refused(await signer.sign({ ...claims, iss: 'x', aud: 'y' }), 'invalid_issuer');
  });

  test('refuses another audience', async () => {
    for (const aud of ['somebody else', [], ['somebody else'], `${CLIENT_ID} `, [[CLIENT_ID]], 7]) {
      await refused(await signer.sign({ ...claims, aud }), 'invalid_audience');
    }
    await refused(await signer.sign({ ...claims, aud: undefined }), 'invalid_audience');
  });

  test('refuses a token without a signature', async () => {
    const token = new UnsecuredJWT(claims).encode();
    await refused(token, 'authentication_failed');
    const [, payload] = token.split('.');
    const header = Buffer.from(JSON.stringify({ alg: 'None', kid: signer.kid }));
    await refused(`${header.toString('base64url')}.${payload}.`, 'authentication_failed');
  });

  test('refuses a token that names no key', async () => {
    const { privateKey } = signer;
    for (const kid of [undefined, '', 7 as never]) {
      const header = { alg: 'RS256', ...(kid !== undefined && { kid }) };
      const token = await new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
      await refused(token, 'invalid_key');
    }
  });

  test('refuses HS256 with the public key or any other key', async () => {
    const { e = '', n = '' } = signer.published;
    const key = createPublicKey({ key: { kty: 'RSA', e, n }, format: 'jwk' });
    for (const secret of [
      key.export({ type: 'spki', format: 'pem' }),
      key.export({ type: 'spki', format: 'der' }),
      key.export({ type: 'pkcs1', format: 'pem' }),
      JSON.stringify(signer.published),
      CLIENT_ID,
    ]) {
      await refused(hs256({ alg: 'HS256', kid: signer.kid }, secret), 'authentication_failed');
    }
    // The same signature under other algorithm names.
    const secret = key.export({ type: 'spki', format: 'pem' });
    for (const alg of ['RS512', 'PS256', 'HS512', 'EdDSA', 'rs256', '']) {
      await refused(hs256({ alg, kid: signer.kid }, secret), 'authentication_failed');
    }
  });
});

describe('tokens refused after a check of the keys', () => {
  test('refuses a signature of another key with the same id', async () => {
    for (const alg of ['RS256', 'ES256'] as const) {
      const forger = await EventSigner.create(alg, signer.kid);
      const err = alg === 'RS256' ? 'authentication_failed' : 'invalid_key';
      await refused(await forger.sign(claims), err);
    }
  });

  test('refuses HS256 declared as RS256', async () => {
    const { e = '', n = '' } = signer.published;
    const key = createPublicKey({ key: { kty: 'RSA', e, n }, format: 'jwk' });
    const secret = key.export({ type: 'spki', format: 'pem' });
    await refused(hs256({ alg: 'RS256', kid: signer.kid }, secret), 'authentication_failed');
  });

  test('refuses text other than the signed text', async () => {
    const [header, , signature] = (await signer.sign(claims)).split('.');
    const other = Buffer.from(JSON.stringify({ ...claims, jti: 'another' })).toString('base64url');
    await refused(`${header}.${other}.${signature}`, 'authentication_failed');
    await refused(`${header}.${other}.`, 'authentication_failed');
  });

  test('refuses a key that the token itself contains', async () => {
    const forger = await EventSigner.create();
    const jwk = forger.published;
    const header = { alg: 'RS256', kid: forger.kid, jwk, jku: 'http://127.0.0.1:1/keys' };
    const token = await new SignJWT(claims).setProtectedHeader(header).sign(forger.privateKey);
    await refused(token, 'invalid_key');
  });

  test('refuses a token that the provider signed for another purpose', async () => {
    const { jti: _jti, ...withoutJti } = claims;
    const { events: _events, ...idToken } = claims;
    for (const each of [
      withoutJti,
      { ...claims, jti: '' },
      { ...claims, jti: 7 },
      idToken,
      { ...claims, events: {} },
      { ...claims, events: [] },
      { ...claims, events: 'all of them' },
    ]) {
      await refused(await signer.sign(each), 'invalid_request');
    }
  });

  test('refuses an unknown critical header', async () => {
    const header = { alg: 'RS256', kid: signer.kid, crit: ['exp'], exp: 1 };
    const token = new SignJWT(claims).setProtectedHeader(header);
    await refused(
      await token.sign(signer.privateKey, { crit: { exp: true } }),
      'authentication_failed',
    );
  });
});

test('requests the keys twice during a flood of unknown keys', async () => {
  let now = 0;
  const { configurationUrl } = provider;
  trust = { ...trust, keys: new ProviderKeys({ configurationUrl, now: () => (now += 1) }) };
  await verify(await signer.sign(claims));
  const forger = await EventSigner.create();
  const [, payload, signature] = (await forger.sign(claims)).split('.');
  const floods = Array.from({ length: 200 }, () => {
    const header = { alg: 'RS256', kid: randomBytes(8).toString('hex') };
    const encoded = Buffer.from(JSON.stringify(header)).toString('base64url');
    return refused(`${encoded}.${payload}.${signature}`, 'invalid_key');
  });
  await Promise.all(floods);
  await refused(await forger.sign(claims), 'invalid_key');
  expect(timesAsked(provider)).toBe(2);
  await expect(verify(await signer.sign(claims))).resolves.toBeDefined();
});

function hs256(header: object, secret: string | Buffer): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}
