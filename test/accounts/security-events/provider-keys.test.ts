import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EventSigner } from '../../../dev/security-events/event-signer.js';
import {
  KeysUnavailableError,
  ProviderKeys,
  UnknownKeyError,
} from '../../../src/accounts/security-events/provider-keys.js';
import { keysServer, timesAsked, type KeysServer } from './support.js';

const HOUR_MS = 60 * 60_000;

let provider: KeysServer;
let first: EventSigner;
let second: EventSigner;
let keys: ProviderKeys;
/** Milliseconds of the clock that the key cache uses. */
let now: number;

beforeAll(async () => {
  provider = await keysServer();
  [first] = provider.signers as [EventSigner];
  second = await EventSigner.create();
});
afterAll(() => provider?.stop());
beforeEach(() => {
  provider.signers = [first];
  provider.instead = undefined;
  provider.asked.length = 0;
  now = 1;
  keys = keysOf(provider.configurationUrl);
});

// The clock advances with each reading, like a real clock.
const keysOf = (configurationUrl: string) =>
  new ProviderKeys({ configurationUrl, now: () => (now += 0.001) });
const keyOf = ({ alg, kid }: Pick<EventSigner, 'alg' | 'kid'>) => keys.keyOf({ alg, kid });
const unknown = { alg: 'RS256', kid: 'nobody' } as const;

describe('cached provider keys', () => {
  test('requests the keys once in 24 hours, however many callers need them', async () => {
    await Promise.all(Array.from({ length: 50 }, () => keyOf(first)));
    now += 23 * HOUR_MS;
    await keyOf(first);
    expect(timesAsked(provider)).toBe(1);
    now += HOUR_MS;
    await Promise.all(Array.from({ length: 50 }, () => keyOf(first)));
    expect(timesAsked(provider)).toBe(2);
  });

  test('finds new keys of the provider and drops removed keys', async () => {
    await keyOf(first);
    provider.signers = [second];
    await expect(keyOf(second)).resolves.toBeDefined();
    await expect(keyOf(first)).rejects.toThrow(UnknownKeyError);
    expect(timesAsked(provider)).toBe(2);
  });

  test('requests the keys for an unknown key id at most every 30 s', async () => {
    await expect(keyOf(unknown)).rejects.toThrow(UnknownKeyError);
    expect(timesAsked(provider)).toBe(1);
    for (let asked = 2; asked < 5; asked++) {
      const all = Array.from({ length: 20 }, () => expect(keyOf(unknown)).rejects.toThrow());
      await Promise.all(all);
      now += 29_000;
      await expect(keyOf(unknown)).rejects.toThrow(UnknownKeyError);
      expect(timesAsked(provider)).toBe(asked);
      now += 1_000;
    }
  });

  test('keeps the keys while the provider is unavailable, until they are too old', async () => {
    await keyOf(first);
    await provider.stop();
    try {
      await expect(keyOf(first)).resolves.toBeDefined();
      await expect(keyOf(second)).rejects.toThrow(KeysUnavailableError);
      // An unknown key may be among the keys that cannot be fetched, so its status stays open.
      await expect(keyOf(second)).rejects.toThrow(KeysUnavailableError);
      now += 24 * HOUR_MS;
      await expect(keyOf(first)).rejects.toThrow(KeysUnavailableError);
    } finally {
      await provider.start();
    }
    now += 5_000;
    provider.signers = [first, second];
    await expect(keyOf(first)).resolves.toBeDefined();
    await expect(keyOf(second)).resolves.toBeDefined();
  });

  test('backs off after a failed request for keys, however many callers come', async () => {
    provider.instead = (_, response) => response.writeHead(503).end();
    for (let asked = 1; asked < 4; asked++) {
      const all = Array.from({ length: 20 }, () => expect(keyOf(first)).rejects.toThrow());
      await Promise.all(all);
      await expect(keyOf(first)).rejects.toThrow(KeysUnavailableError);
      expect(timesAsked(provider)).toBe(asked);
      now += 5_000;
    }
    provider.instead = undefined;
    await expect(keyOf(first)).resolves.toBeDefined();
  });

  test.each([
    ['is no JSON', 'keys'],
    ['is no object', '[]'],
    ['has no keys', '{"keys": {}}'],
    ['has something else for keys', '{"keys": [1]}'],
    ['has too many of them', JSON.stringify({ keys: Array.from({ length: 101 }, () => ({})) })],
    ['is too long', JSON.stringify({ keys: [], more: 'x'.repeat(300_000) })],
  ])('takes no keys from a response that %s', async (_, answer) => {
    provider.instead = (_request, response) => response.end(answer);
    await expect(keyOf(first)).rejects.toThrow(KeysUnavailableError);
  });

  test('uses none of two keys with the same id', async () => {
    provider.signers = [first, await EventSigner.create('RS256', first.kid)];
    await expect(keyOf(first)).rejects.toThrow(UnknownKeyError);
  });
});

describe('requests for keys', { tags: 'attack' }, () => {
  test('follows no redirect for the keys', async () => {
    let followed = 0;
    provider.instead = ({ url }, response) => {
      if (url?.includes('elsewhere')) followed++;
      response.writeHead(302, { location: `${provider.issuer}/elsewhere` }).end();
    };
    await expect(keyOf(first)).rejects.toThrow(KeysUnavailableError);
    expect([followed, provider.asked]).toEqual([
      0,
      ['/.well-known/risc-configuration', '/oauth2/v3/certs'],
    ]);
  });

  test('limits the wait for the keys', async () => {
    provider.instead = (_, response) => void response.writeHead(200).write('{');
    keys = new ProviderKeys({ configurationUrl: provider.configurationUrl, timeoutMs: 50 });
    await expect(keyOf(first)).rejects.toThrow(KeysUnavailableError);
  });
});
