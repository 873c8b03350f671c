import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { BadRequestError, UnavailableError } from '../../../src/lib/errors.js';
import { ProviderWebhook } from '../../../src/platform/webhooks/provider-webhook.js';
import { webhookSecrets } from '../../../src/platform/webhooks/webhook-secrets.js';

const newSecret = () => `whsec_${randomBytes(24).toString('base64')}`;
const [secret, older, foreign] = [newSecret(), newSecret(), newSecret()];

const webhook = new ProviderWebhook({
  kind: 'video',
  secrets: [secret, older],
  setting: 'VIDEO_WEBHOOK_SECRET',
});

const BODY = '{"id":"p1","status":"succeeded","text":"ä 🎬"}';

interface Signing {
  readonly by?: string;
  readonly at?: Date;
  readonly body?: string;
  readonly prefix?: 'webhook' | 'svix';
}

/** Returns headers that sign a body. */
function signed({ at = new Date(), body = BODY, by = secret, prefix = 'webhook' }: Signing = {}) {
  const id = 'msg_1';
  return {
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: `${Math.floor(at.getTime() / 1_000)}`,
    [`${prefix}-signature`]: new Webhook(by).sign(id, at, body),
  };
}

const verify = (headers: Record<string, string>, body = BODY) =>
  webhook.verify(Buffer.from(body), headers);

const ago = (ms: number) => new Date(Date.now() - ms);
const MINUTE_MS = 60_000;

describe('a signature', { tags: 'attack' }, () => {
  test.each(['webhook', 'svix'] as const)('a signature is read from headers %s-*', (prefix) => {
    expect(verify(signed({ prefix }))).toEqual({
      kind: 'video',
      eventId: 'msg_1',
      payload: JSON.parse(BODY) as unknown,
    });
  });

  test('a signature is accepted by each valid secret, also as one of several', () => {
    expect(verify(signed({ by: older })).eventId).toBe('msg_1');
    const headers = signed();
    const wrong = signed({ by: foreign })['webhook-signature'] ?? '';
    const several = `v1a,AAAA ${wrong} v1 v1, ${headers['webhook-signature'] ?? ''}`;
    expect(verify({ ...headers, 'webhook-signature': several }).eventId).toBe('msg_1');
  });

  test('a signature is accepted for five minutes', () => {
    expect(verify(signed({ at: ago(4.9 * MINUTE_MS) })).eventId).toBe('msg_1');
    expect(verify(signed({ at: ago(-4.9 * MINUTE_MS) })).eventId).toBe('msg_1');
  });

  const valid = signed();
  test.each<[string, Record<string, string>]>([
    ['missing', {}],
    ['without its id', { ...valid, 'webhook-id': '' }],
    ['of another id', { ...valid, 'webhook-id': 'msg_2' }],
    ['of an id over 255 characters', { ...valid, 'webhook-id': 'm'.repeat(256) }],
    ['of another time', { ...valid, 'webhook-timestamp': `${Math.floor(Date.now() / 1e3) + 9}` }],
    ['without a time', { ...valid, 'webhook-timestamp': 'now' }],
    [
      'with a text after its time',
      { ...valid, 'webhook-timestamp': `${valid['webhook-timestamp']}x` },
    ],
    ['empty', { ...valid, 'webhook-signature': '' }],
    [
      'of another version',
      { ...valid, 'webhook-signature': valid['webhook-signature']!.replace('v1', 'v2') },
    ],
    ['without a comma', { ...valid, 'webhook-signature': 'v1' }],
    [
      'over 2,048 characters',
      { ...valid, 'webhook-signature': `${valid['webhook-signature']}${' v1,A'.repeat(500)}` },
    ],
    ['by another secret', signed({ by: foreign })],
    ['of another body', signed({ body: '{}' })],
    ['older than five minutes', signed({ at: ago(5.1 * MINUTE_MS) })],
    ['more than five minutes ahead', signed({ at: ago(-5.1 * MINUTE_MS) })],
    [
      'split over both kinds of headers',
      { ...valid, 'svix-signature': valid['webhook-signature']!, 'webhook-signature': 'v1,AAAA' },
    ],
  ])('a signature is refused if it is %s', (_, headers) => {
    expect(() => verify(headers)).toThrow(new BadRequestError('Invalid signature'));
  });

  test('a signature is refused if the body is empty', () => {
    expect(() => verify(signed(), '')).toThrow(new BadRequestError('Invalid signature'));
  });

  test('a signature does not make a body pass that is not JSON', () => {
    expect(() => verify(signed({ body: '{"a' }), '{"a')).toThrow('The event is not valid JSON');
  });

  test('a signature cannot be checked without a secret, and the missing setting is named', () => {
    const unset = new ProviderWebhook({
      kind: 'email',
      secrets: undefined,
      setting: 'EMAIL_WEBHOOK_SECRET',
    });
    expect(() => unset.verify(Buffer.from(BODY), signed())).toThrow(UnavailableError);
    expect(() => unset.verify(Buffer.from(BODY), signed())).toThrow(/EMAIL_WEBHOOK_SECRET/);
  });
});

describe('secrets', () => {
  test('one or two secrets can be configured', () => {
    expect(webhookSecrets.parse(secret)).toEqual([secret]);
    expect(webhookSecrets.parse(`${secret}, ${older}`)).toEqual([secret, older]);
  });

  test.each([
    ['missing', ''],
    ['three', [secret, older, foreign].join()],
    ['without its prefix', secret.slice('whsec_'.length)],
    ['under 24 bytes', `whsec_${randomBytes(23).toString('base64')}`],
    ['no base64', `whsec_${'?'.repeat(32)}`],
    ['in the alphabet of addresses', `whsec_${'_-'.repeat(16)}`],
  ])('secrets are refused if they are %s', (_, value) => {
    expect(webhookSecrets.safeParse(value).success).toBe(false);
  });
});
