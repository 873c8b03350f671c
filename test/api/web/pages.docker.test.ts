// @module-tag attack
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createWeb } from '../../../api/web/web.js';
import { giveCredits } from '../../gateway/support.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { webAlone, type WebAlone } from '../../support/web-alone.js';

let web: WebAlone;

beforeAll(async () => {
  web = await webAlone();
});
afterAll(() => web?.close());

const PASSWORD = 'a-password-of-tests';
const SCRIPT = '"><script>alert(1)</script>';

const get = (path: string, cookie?: string) =>
  call(web.url, 'GET', path, { headers: cookie ? { cookie } : {} });

/** Registers a user and signs in. @returns the session cookie. */
async function signUp(name: string, userAgent = 'a browser'): Promise<string> {
  const body = { email: `${randomUUID()}@example.com`, password: PASSWORD, name };
  await call(web.url, 'POST', '/api/register', { body });
  const headers = { 'user-agent': userAgent };
  const signedIn = await call(web.url, 'POST', '/api/auth/login', { body, headers });
  return signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}

const PAGES = [
  '/login',
  '/reset-password',
  '/reset-password?token=x',
  '/verify-email?token=x',
  '/api/auth/admin?token=x',
];

test.each(PAGES)(
  "%s loads only the platform's own scripts and styles, and none inline",
  async (path) => {
    const { headers, status, text } = await get(path);
    expect(status).toBe(200);
    const policy = headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(text).not.toMatch(/<script(?![^>]* src="\/)|<style|\son\w+=|\sstyle=|javascript:/);
    const parts = [...text.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]+)"/g)];
    expect(parts).toHaveLength(2);
    for (const [, part = ''] of parts) expect((await get(part)).status).toBe(200);
  },
);

test.each(PAGES)('%s does not repeat any query parameter', async (path) => {
  const plain = await get(path);
  const more = path.includes('?') ? '&' : '?';
  for (const name of ['done', 'linked', 'next', 'return']) {
    const asked = await get(`${path}${more}${name}=${encodeURIComponent(SCRIPT)}`);
    expect([name, asked.text]).toEqual([name, plain.text]);
  }
  for (const name of ['error', 'token']) {
    const wrong = await get(`${path}${more}${name}=${encodeURIComponent(SCRIPT)}`);
    expect(wrong.status).toBe(200);
    expect(wrong.text).not.toContain('alert(1)');
  }
});

test('redirects a browser from / to its account or to sign-in', async () => {
  const headers = { accept: 'text/html,*/*;q=0.8' };
  const signedOut = await call(web.url, 'GET', '/', { headers });
  const cookie = await signUp('Ada');
  const signedIn = await call(web.url, 'GET', '/', { headers: { ...headers, cookie } });
  expect([signedOut, signedIn].map((each) => [each.status, each.headers.get('location')])).toEqual([
    [302, '/login'],
    [302, '/dashboard'],
  ]);
});

test('names the documentation at / to programs', async () => {
  const { body, status } = await get('/');
  expect([status, body]).toEqual([
    200,
    {
      service: 'Agent Platform Service: web API',
      documentation: '/docs',
      openapi: '/openapi.json',
    },
  ]);
  expect((await get(body.documentation)).status).toBe(200);
  expect((await get(body.openapi)).body.info.title).toBe(body.service);
});

test('serves an icon, which the pages may load', async () => {
  const icon = await fetch(`${web.url}/favicon.ico`);
  expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/x-icon']);
  const bytes = Buffer.from(await icon.arrayBuffer());
  expect(bytes.readUInt32LE(0)).toBe(0x1_0000);
  const { headers } = await get('/login');
  expect(headers.get('content-security-policy')).toContain("img-src 'self'");
});

test('every form with a password field uses POST', async () => {
  const { text } = await get('/login');
  const forms = [...text.matchAll(/<form[^>]*>/g)].map(([form]) => form);
  expect(forms.length).toBeGreaterThan(1);
  for (const form of forms) expect(form).toContain('method="post"');
});

test.each([
  [{}, ['Google', 'GitHub']],
  [
    { IDP_ISSUER_URL: 'https://id.example', CODEHOST_URL: 'https://code.example' },
    ['id.example', 'code.example'],
  ],
  [{ IDP_NAME: 'Example & Co', CODEHOST_NAME: 'Forge' }, ['Example &#38; Co', 'Forge']],
])('names the providers on the sign-in buttons with settings %j', async (named, names) => {
  const env = { IDP_CLIENT_ID: 'id', CODEHOST_CLIENT_ID: 'id', CODEHOST_CLIENT_SECRET: 'secret' };
  const other = await databaseAlone(web.database, undefined, { ...env, ...named });
  onTestFinished(other.close);
  const listening = await createWeb(other.dependencies).listen('127.0.0.1', 0);
  onTestFinished(listening.close);
  const { text } = await call(listening.url, 'GET', '/login');
  expect([...text.matchAll(/>Continue with ([^<]+)<\/a>/g)].map(([, name]) => name)).toEqual(names);
});

describe('errors on /login', () => {
  test.each(
    ['Idp', 'Codehost'].flatMap((provider) =>
      ['NotConfigured', 'AuthFailed', 'TokenFailed', 'NoEmail', 'AuthError', 'LinkRefused'].map(
        (value) => provider + value,
      ),
    ),
  )('explains the error %s in a sentence', async (error) => {
    const { text } = await get(`/login?error=${error}`);
    const [, said = ''] = /role="alert">([^<]*)</.exec(text) ?? [];
    expect(said).toMatch(/^\w.*\.$/);
    expect(said).not.toBe('Signing in failed. Try again.');
    expect(text).not.toContain(error);
  });

  test.each(['constructor', '__proto__', 'Idp', 'x'.repeat(10_000), ''])(
    'shows a general message for the unknown error %s',
    async (error) => {
      const { text } = await get(`/login?error=${error}`);
      if (error.length <= 64) expect(text).toContain('Signing in failed. Try again.');
      else expect(text).not.toContain(error);
    },
  );
});

describe('/dashboard', () => {
  test('redirects to /login without a session', async () => {
    const { headers, status } = await get('/dashboard');
    expect([status, headers.get('location')]).toEqual([302, '/login']);
  });

  test('shows names as entered and does not execute them', async () => {
    const cookie = await signUp(SCRIPT);
    await call(web.url, 'POST', '/api/keys', { body: { name: SCRIPT }, headers: { cookie } });
    const { status, text } = await get('/dashboard', cookie);
    expect(status).toBe(200);
    expect(text).not.toContain('<script>alert');
    expect(text.split('&#60;script&#62;alert').length).toBeGreaterThan(2);
  });

  test('shows the user agent of a session without executing it', async () => {
    const cookie = await signUp('Ada');
    const { text: before } = await get('/dashboard', cookie);
    expect(before).toContain('This browser');
    const { body } = await call(web.url, 'GET', '/api/auth/session', { headers: { cookie } });
    const again = { email: body.user.email, password: PASSWORD };
    const headers = { 'user-agent': SCRIPT };
    await call(web.url, 'POST', '/api/auth/login', { body: again, headers });
    const { text } = await get('/dashboard', cookie);
    expect(text).toContain('&#60;script&#62;alert');
    expect(text).not.toContain('<script>alert');
  });
});

test('the dashboard shows plan, credits and own keys of AI providers', async () => {
  const cookie = await signUp('Ada');
  const section = async () => {
    const { text } = await get('/dashboard', cookie);
    return (
      /<section aria-labelledby="about-plan-and-credits">.*?<\/section>/s.exec(text)?.[0] ?? ''
    );
  };
  expect((await section()).replace(/\s+/g, ' ')).toMatch(
    /<dd>\s*none\s*<\/dd>.*<dd>\s*\$0\.00\s*<\/dd>/,
  );
  expect(await section()).toContain('<option>anthropic</option>');
  const { id } = (await get('/api/settings', cookie)).body.user;
  await queryRows(
    web.database.ownerUrl,
    `${insertSql('subscriptions', { ...ROWS.subscriptions?.(id, 1), period_end: '2100-01-01' })};
     INSERT INTO provider_keys (user_id, provider, sealed_key, created_at)
       VALUES ('${id}', 'openai', 'a sealed key', now())`,
  );
  await giveCredits(web.database.db, id, 12_345_678n);
  const shown = await section();
  for (const part of ['solo, until', '$12.34', 'Delete your key of openai']) {
    expect(shown).toContain(part);
  }
  expect(shown).toContain('<input type="hidden" name="action" value="disable-byok" />');
  expect(shown).not.toContain('a sealed key');
});
