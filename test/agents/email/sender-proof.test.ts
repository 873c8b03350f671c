// @module-tag attack
import { describe, expect, test } from 'vitest';
import { emailSettings } from '../../../src/agents/email/settings.js';
import { readAreas } from '../../../src/platform/environment/read.js';
import { addressOf } from '../../../src/agents/email/mailbox.js';
import { headersOf, isAutomatic, senderOf } from '../../../src/agents/email/received-mail.js';
import { textOf, threadOf } from '../../../src/agents/email/received-mail.js';
import { isProven } from '../../../src/agents/email/sender-proof.js';

const SENDER = 'ada@good.example';
const RULES = { authservId: 'mx.here.example', isRequired: true };

const mail = (headers: Record<string, string | string[]>, from = `Ada <${SENDER}>`) => ({
  from,
  headers,
});

const proves = (results: string | string[] | undefined, rules = RULES) => {
  const whole = mail(results === undefined ? {} : { 'Authentication-Results': results });
  return isProven(headersOf(whole), SENDER, rules);
};

describe('proof of a sender', () => {
  test.each([
    ['DMARC', 'mx.here.example; dmarc=pass header.from=good.example'],
    ['DMARC without a domain', 'mx.here.example; spf=none; dmarc=pass (p=reject) action=none'],
    ['DKIM', 'mx.here.example 1; dkim=pass (2048-bit key) header.d=good.example header.s=s1'],
    ['an identity of DKIM', 'mx.here.example; dkim=pass header.i=@good.example'],
    ['SPF', 'mx.here.example;\r\n\tspf=pass smtp.mailfrom=ada@good.example'],
    ['SPF of a domain', 'mx.here.example; spf=pass smtp.mailfrom="good.example"'],
    ['capitals', 'MX.Here.Example; DKIM=Pass header.d=Good.Example'],
    [
      'one of two signatures',
      'mx.here.example; dkim=fail header.d=good.example; dkim=pass header.d=good.example',
    ],
  ])('accepts %s', (_, results) => {
    expect(proves(results)).toBe(true);
  });

  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another server', 'mx.evil.example; dmarc=pass header.from=good.example'],
    ['a longer name of a server', 'mx.here.example.evil.example; dmarc=pass'],
    ['a pass of DMARC for another domain', 'mx.here.example; dmarc=pass header.from=evil.example'],
    ['a signature of another domain', 'mx.here.example; dkim=pass header.d=evil.example'],
    ['a signature of a subdomain', 'mx.here.example; dkim=pass header.d=x.good.example'],
    ['a domain that ends alike', 'mx.here.example; dkim=pass header.d=evilgood.example'],
    ['an envelope of another domain', 'mx.here.example; spf=pass smtp.mailfrom=a@evil.example'],
    ['the greeting of a server', 'mx.here.example; spf=pass smtp.helo=good.example'],
    ['a failed DMARC', 'mx.here.example; dmarc=fail; dkim=pass header.d=good.example'],
    ['two results of DMARC', 'mx.here.example; dmarc=pass; dmarc=none'],
    ['a comment', 'mx.here.example; spf=fail (; dmarc=pass header.from=good.example ;)'],
    ['a reason', 'mx.here.example; spf=fail reason="; dmarc=pass header.from=good.example"'],
    ['a server in a comment', '(mx.here.example;) mx.evil.example; dmarc=pass'],
    ['a comment without an end', 'mx.here.example; dmarc=pass (header.from=good.example'],
    ['a quote without an end', 'mx.here.example; dmarc=pass reason="header.from=good.example'],
    [
      'an address in a local part',
      'mx.here.example; spf=pass smtp.mailfrom="x@good.example "@evil.example',
    ],
    [
      'a property that is given twice',
      'mx.here.example; dkim=pass header.d=evil.example header.d=good.example',
    ],
    ['a longer field than any server writes', `mx.here.example; dmarc=pass ${'x'.repeat(20_000)}`],
    ['many spaces', `mx.here.example; ${' '.repeat(10_000)}dmarc`],
  ])('refuses %s', (_, results) => {
    expect(proves(results)).toBe(false);
  });

  const forged = 'mx.evil.example; dmarc=pass header.from=good.example';
  const right = 'mx.here.example; dmarc=pass header.from=good.example';
  const failing = 'mx.here.example; dmarc=fail header.from=good.example';

  test("reads the receiving server's results behind those of another server", () => {
    expect(proves([forged, right])).toBe(true);
    expect(proves([forged, failing])).toBe(false);
  });

  test("counts only the first of the receiving server's results, which is its own", () => {
    expect(proves([failing, right])).toBe(false);
    expect(proves([right, failing])).toBe(true);
  });

  test('reads fields that are listed one by one, regardless of the case of their names', () => {
    const headers = [
      { name: 'Authentication-Results', value: failing },
      { name: 'authentication-results', value: right },
    ];
    const listed = headersOf({ from: SENDER, headers });
    expect(isProven(listed, SENDER, RULES)).toBe(false);
    const reversed = headersOf({ from: SENDER, headers: headers.toReversed() });
    expect(isProven(reversed, SENDER, RULES)).toBe(true);
  });

  test('accepts a missing header as a proof only in development, and no failed result there', () => {
    const development = { authservId: undefined, isRequired: false };
    expect(proves(undefined, { ...RULES, isRequired: false })).toBe(true);
    for (const results of [right, forged, failing]) {
      expect(
        isProven(headersOf(mail({ 'authentication-results': results })), SENDER, development),
      ).toBe(false);
    }
  });
});

describe('address of a sender', () => {
  test.each([
    ['ada@good.example', SENDER],
    ['Ada <Ada@Good.Example>', SENDER],
    ['"Lovelace, Ada" <ada@good.example>', SENDER],
    ['"<mallory@evil.example>" <ada@good.example>', SENDER],
    ['(ada@evil.example) ada@good.example', SENDER],
    ['Ada@Good.example <ada@good.example>', SENDER],
    ['ada@evil.example <ada@good.example>', undefined],
    ['mallory@evil.example, ada@good.example', undefined],
    ['<ada@good.example> <mallory@evil.example>', undefined],
    ['ada@good.example>', undefined],
    ['"ada@good.example" ', undefined],
    ['ada', undefined],
    ['', undefined],
  ])('reads %s as %s', (mailbox, address) => {
    expect(addressOf(mailbox)).toBe(address);
  });

  test('a mail with contradicting fields has no sender', () => {
    const of = (from: string, headers: Record<string, string | string[]>) =>
      senderOf(mail(headers, from), headersOf(mail(headers)));
    expect(of(SENDER, { from: `Ada <${SENDER}>` })).toBe(SENDER);
    expect(of(SENDER, { From: 'mallory@evil.example' })).toBeUndefined();
    expect(of(SENDER, { from: [SENDER, 'mallory@evil.example'] })).toBeUndefined();
  });
});

test.each([
  [{ 'Auto-Submitted': 'auto-replied' }, true],
  [{ 'auto-submitted': 'auto-generated (vacation)' }, true],
  [{ 'Auto-Submitted': 'no' }, false],
  [{ 'auto-submitted': 'No; reason=x' }, false],
  [{ Precedence: 'Bulk' }, true],
  [{ precedence: 'list' }, true],
  [{ precedence: 'first-class' }, false],
  [{ 'Return-Path': '<>' }, true],
  [{ 'Return-Path': '<ada@good.example>' }, false],
  [{}, false],
])('a mail with %j is automatic: %s', (headers, expected) => {
  expect(isAutomatic(headersOf(mail(headers)))).toBe(expected);
});

test('reads the text of a mail, and HTML where there is none', () => {
  const of = (text: string | null, html: string | null = null) =>
    textOf({ from: SENDER, text, html });
  expect(of('  plain\n> quoted ', '<p>no</p>')).toBe('plain\n> quoted');
  expect(of(' ', '<style>p {}</style><p>One &amp; two</p><script>x()</script><p>three</p>')).toBe(
    'One & two\n\nthree',
  );
  expect(of(null)).toBe('');
  expect(Buffer.byteLength(of('ä'.repeat(60_000)))).toBe(100_000);
  expect(Buffer.byteLength(of(`x${'ä'.repeat(60_000)}`))).toBe(99_999);
  expect(of('nul\0 and half a pair \ud800')).toBe('nul\ufffd and half a pair \ufffd');
});

test('returns the references of a thread: its first mail and its last ones', () => {
  const of = (headers: Record<string, string>, message_id: string | null = '<m@x>') => {
    const whole = { from: SENDER, headers, message_id };
    return threadOf(whole, headersOf(whole));
  };
  expect(of({})).toEqual({ messageId: '<m@x>', earlier: [] });
  expect(of({ 'In-Reply-To': '<a@x>' }).earlier).toEqual(['<a@x>']);
  expect(of({ References: '<a@x>\r\n <b@x>', 'In-Reply-To': '<b@x>' }).earlier).toEqual([
    '<a@x>',
    '<b@x>',
  ]);
  const many = Array.from({ length: 200 }, (_, n) => `<${n}@mail.example>`);
  const { earlier } = of({ references: many.join(' ') });
  expect([earlier[0], earlier.at(-1)]).toEqual([many[0], many.at(-1)]);
  expect(earlier.join(' ').length).toBeLessThanOrEqual(900);
  expect(of({}, 'm@x\r\nBcc: mallory@evil.example').messageId).toBeNull();
});

describe('settings', () => {
  const KEY = { EMAIL_API_KEY: 're_1' };
  const PRODUCTION = { NODE_ENV: 'production', EMAIL_AUTHSERV_ID: 'mx.here.example', ...KEY };
  const settings = (env: Readonly<Record<string, string | undefined>>) =>
    readAreas({ email: emailSettings }, env).email;

  test('demand the name of the receiving server in production, with a key', () => {
    expect(settings(PRODUCTION)).toMatchObject({
      requiresProof: true,
      authservId: 'mx.here.example',
    });
    expect(() => settings({ ...PRODUCTION, EMAIL_AUTHSERV_ID: undefined })).toThrow(
      'EMAIL_AUTHSERV_ID is missing',
    );
    expect(settings({ NODE_ENV: 'production' }).apiKey).toBeUndefined();
    expect(settings(KEY)).toMatchObject({ requiresProof: false, authservId: undefined });
  });

  test('the settings of e-mails refuse the stand-in, and an address without TLS, in production', () => {
    expect(() => settings({ ...PRODUCTION, EMAIL_API_KEY: 'local' })).toThrow('development only');
    const plain = 'http://mail.example';
    expect(() => settings({ ...PRODUCTION, EMAIL_API_URL: plain })).toThrow('https://');
    const local = 'http://127.0.0.1:3030';
    expect(settings({ ...PRODUCTION, EMAIL_API_URL: local }).apiUrl).toBe(local);
    expect(settings({ ...KEY, EMAIL_API_URL: plain }).apiUrl).toBe(plain);
    expect(settings({}).apiUrl).toBe('https://api.resend.com');
  });

  test('read domain and senders in lower case, and refuse any others', () => {
    const { allowedSenders, domain } = settings({
      EMAIL_DOMAIN: 'Agents.Example.COM',
      EMAIL_ALLOWED_SENDERS: 'Ada@Good.Example, @Friends.example',
    });
    expect([domain, [...allowedSenders]]).toEqual([
      'agents.example.com',
      [SENDER, '@friends.example'],
    ]);
    for (const wrong of ['example', '@x.example', 'a..b', '-a.example', 'a.example/']) {
      expect(() => settings({ EMAIL_DOMAIN: wrong })).toThrow('EMAIL_DOMAIN must be a domain');
    }
    for (const wrong of ['ada', '@', '@example', 'a@b@c.example', 'Ada <ada@good.example>']) {
      expect(() => settings({ EMAIL_ALLOWED_SENDERS: wrong })).toThrow('EMAIL_ALLOWED_SENDERS');
    }
    for (const wrong of ['whsec_', 'secret', `whsec_${'A'.repeat(8)}`]) {
      expect(() => settings({ EMAIL_WEBHOOK_SECRET: wrong })).toThrow('EMAIL_WEBHOOK_SECRET');
    }
  });
});
