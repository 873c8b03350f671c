import { randomInt, randomUUID } from 'node:crypto';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tokenIn } from '../../../dev/accounts/mailbox.js';
import { eventClaims } from '../../../dev/security-events/event-signer.js';
import { makeAdminLinks } from '../../../src/accounts/accounts/admin-links.js';
import { requestAccountDeletion } from '../../../src/accounts/accounts/account-deletions.js';
import { queryRows } from '../../platform/database/catalog.js';
import { textsOfRows } from '../../platform/database/traces.js';
import { accountsSite, type AccountsSite } from '../../support/accounts-site.js';
import { siweMessage } from '../../support/chain/siwe.js';
import { Browser } from '../../support/cookies-browser.js';
import { textsOfHistories } from '../../support/histories.js';
import { ADMIN_EMAIL } from '../../support/platform-environment.js';
import { workerLog } from '../../support/temporal.js';

let site: AccountsSite;

beforeAll(async () => {
  site = await accountsSite();
});
afterAll(() => site?.close());

const newEmail = () => `${randomUUID()}@example.com`;
const owner = (sql: string) => queryRows<Record<string, unknown>>(site.ownerUrl, sql);
const newBrowser = () => new Browser(site.webUrl);

/** Sends a request and checks the status of its answer. */
async function ask(
  browser: Browser,
  wanted: number,
  method: string,
  path: string,
  options?: Parameters<Browser['ask']>[2],
) {
  const answer = await browser.ask(method, path, options);
  expect([method, path, answer.status, answer.body]).toEqual([method, path, wanted, answer.body]);
  return answer;
}

/** Signs the identity provider's event about an address. */
const eventOf = (email: string, type: 'sessions-revoked' | 'verification') =>
  site.signer.sign(
    eventClaims({
      issuer: site.idp.issuerUrl,
      audience: site.idp.clientId,
      type,
      subject: { email },
    }),
  );

async function registered(email = newEmail()) {
  const [browser, password] = [newBrowser(), `password ${randomUUID()}`];
  await ask(browser, 200, 'POST', '/api/register', { body: { email, password } });
  await ask(browser, 200, 'POST', '/api/auth/login', { body: { email, password } });
  return { browser, email, password };
}

test('accepted requests are completed after the API is killed right after its answer', async () => {
  await site.startApi();
  const [ada, bob] = [await registered(), await registered()];
  const known = await owner(`SELECT id FROM users WHERE email = '${bob.email}'`);
  const newcomer = { email: newEmail(), password: `password ${randomUUID()}` };
  const token = await eventOf(ada.email, 'sessions-revoked');
  await Promise.all([
    ask(newBrowser(), 200, 'POST', '/api/register', { body: newcomer }),
    ask(newBrowser(), 200, 'POST', '/api/auth/forgot-password', { body: { email: ada.email } }),
    ask(newBrowser(), 202, 'POST', '/api/security/risc', { body: token }),
    ask(bob.browser, 202, 'DELETE', '/api/settings', { body: { confirm: bob.email } }),
  ]);
  await site.killApi();
  await site.startWorkers();
  await site.mailbox.mailTo(newcomer.email);
  await site.mailbox.mailTo(ada.email, 2);
  const left = (sql: string) => async () => (await owner(sql)).length;
  await expect
    .poll(
      left(`SELECT FROM sessions s JOIN users u ON u.id = user_id WHERE email = '${ada.email}'`),
    )
    .toBe(0);
  await expect.poll(left(`SELECT FROM users WHERE id = '${String(known[0]?.id)}'`)).toBe(0);
});

/**
 * Signs in and out in every possible way.
 *
 * @returns all secrets seen, by a name for each.
 */
async function playedSecrets(): Promise<Map<string, string>> {
  const seen = new Map<string, string>();
  const see = (what: string, secret: string | undefined) => {
    if (secret === undefined || secret.length < 16)
      throw new Error(`missing or short secret: ${what}`);
    seen.set(`${what} ${seen.size}`, secret);
    return secret;
  };
  const seeCookies = (browser: Browser) => {
    for (const [name, value] of browser.cookies) see(`cookie ${name}`, value);
  };
  const seeIn = (answer: Awaited<ReturnType<Browser['ask']>>, name: string) =>
    see(name, answer.body[name]);
  const linkTo = async (address: string, count: number) =>
    see('link', tokenIn(await site.mailbox.mailTo(address, count)));
  const newPassword = () => see('password', `password ${randomUUID()}`);

  // Registration and passwords; some answers are stored for idempotent repetition.
  const [ada, email] = [newBrowser(), newEmail()];
  let password = newPassword();
  const idempotent = () => ({ 'idempotency-key': randomUUID() });
  const registration = { body: { email, password }, headers: idempotent() };
  await ask(ada, 200, 'POST', '/api/register', registration);
  await ask(ada, 200, 'POST', '/api/register', registration);
  await ask(ada, 401, 'POST', '/api/auth/login', { body: { email, password: newPassword() } });
  // A password typed into the email field.
  await ask(ada, 401, 'POST', '/api/auth/login', { body: { email: newPassword(), password } });
  await ask(ada, 200, 'POST', '/api/auth/login', { body: { email, password } });
  seeCookies(ada);
  seeIn(await ask(ada, 200, 'GET', '/api/auth/session'), 'csrfToken');
  const verification = { token: await linkTo(email, 1) };
  await ask(ada, 200, 'POST', '/api/auth/verify-email', { body: verification });
  const change = { currentPassword: password, newPassword: (password = newPassword()) };
  await ask(ada, 200, 'POST', '/api/settings/password', { body: change });
  seeCookies(ada);
  await ask(ada, 200, 'POST', '/api/auth/forgot-password', { body: { email } });
  const reset = { token: await linkTo(email, 2), password: (password = newPassword()) };
  await ask(ada, 200, 'POST', '/api/auth/reset-password', { body: reset });
  await ask(ada, 400, 'POST', '/api/auth/reset-password', { body: reset });
  await ask(ada, 200, 'POST', '/api/auth/login', { body: { email, password } });
  seeCookies(ada);

  // API keys.
  const key = await ask(ada, 201, 'POST', '/api/keys', {
    body: { name: 'of a program' },
    headers: idempotent(),
  });
  const apiKey = seeIn(key, 'key');
  await ask(ada, 200, 'POST', '/api/keys/validate', { body: { apiKey } });
  const guess = see('key', `sk_${randomUUID()}`);
  await ask(ada, 401, 'POST', '/api/keys/validate', { body: { apiKey: guess } });
  for (const [wanted, bearer] of [
    [200, apiKey],
    [401, guess],
  ] as const) {
    const headers = { authorization: `Bearer ${bearer}` };
    await ask(newBrowser(), wanted, 'GET', '/api/agents', { headers });
  }

  // Providers: sign-in, linking and values typed into their addresses.
  const callback = async (browser: Browser, back: URL, location: string) => {
    see('state', back.searchParams.get('state') ?? undefined);
    see('code', back.searchParams.get('code') ?? undefined);
    seeCookies(browser);
    const landed = await ask(browser, 302, 'GET', back.pathname + back.search);
    expect(landed.location).toBe(location);
    seeCookies(browser);
  };
  const person = { email, email_verified: true };
  const subject = randomUUID();
  for (const [begin, location] of [
    ['/api/auth/google', '/dashboard'],
    ['/api/auth/google', '/login?error=IdpTokenFailed'],
  ] as const) {
    const browser = newBrowser();
    const begun = await ask(browser, 302, 'GET', begin);
    const url = new URL(begun.location);
    see('nonce', url.searchParams.get('nonce') ?? undefined);
    const back = await site.idp.consent(begun.location, subject, person);
    if (location !== '/dashboard') back.searchParams.set('code', randomUUID());
    await callback(browser, back, location);
  }
  const coder = { id: randomInt(1, 2 ** 40), login: 'ada', emails: [] };
  const linking = await ask(ada, 200, 'POST', '/api/settings/identities/github');
  const linked = site.codeHost.consent(linking.body.url, coder);
  await callback(ada, linked, '/dashboard?linked=github');

  // A wallet that signs in and is linked.
  const wallet = privateKeyToAccount(generatePrivateKey());
  const { host: domain, origin: uri } = new URL(site.webUrl);
  const shown = async () => {
    const nonce = seeIn(await ask(ada, 200, 'GET', '/api/auth/nonce'), 'nonce');
    const message = siweMessage({ address: wallet.address, nonce, domain, uri });
    const signature = see('signature', await wallet.signMessage({ message }));
    return { body: { address: wallet.address, message, signature } };
  };
  await ask(ada, 201, 'POST', '/api/settings/identities/wallet', await shown());
  await ask(ada, 200, 'POST', '/api/wallet-auth', await shown());
  seeCookies(ada);

  // Farcaster.
  const proof = see('proof', await site.quickAuth.token(4711));
  const verify = { body: { token: proof } };
  const first = await ask(ada, 200, 'POST', '/api/auth/farcaster/verify', verify);
  const renew = { body: { token: seeIn(first, 'token') } };
  const second = await ask(ada, 200, 'POST', '/api/auth/farcaster/refresh', renew);
  const link = { body: { token: seeIn(second, 'token') } };
  await ask(ada, 201, 'POST', '/api/settings/identities/farcaster', link);

  // An admin link and an invalid one.
  const [adminLink] = await makeAdminLinks(site.database, [ADMIN_EMAIL]);
  const admin = await registered(ADMIN_EMAIL);
  see('password', admin.password);
  seeCookies(admin.browser);
  await ask(admin.browser, 200, 'GET', `/api/auth/admin?token=${see('guess', randomUUID())}`);
  const becoming = (token: string) => ({ body: { token } });
  await ask(admin.browser, 404, 'POST', '/api/auth/admin', becoming(see('guess', randomUUID())));
  const right = becoming(see('admin link', adminLink?.token));
  await ask(admin.browser, 200, 'POST', '/api/auth/admin', right);

  // An address change, an event of the identity provider and an export.
  const address = newEmail();
  await ask(ada, 200, 'PATCH', '/api/settings', { body: { email: address } });
  const confirmation = { token: await linkTo(address, 1) };
  await ask(ada, 200, 'POST', '/api/auth/verify-email', { body: confirmation });
  const event = see('event', await eventOf(email, 'verification'));
  await ask(newBrowser(), 202, 'POST', '/api/security/risc', { body: event });
  await ask(ada, 200, 'GET', '/api/settings/export');

  expect(site.idp.issued).toHaveLength(3);
  expect(site.codeHost.issued).toHaveLength(2);
  for (const each of [...site.idp.issued, ...site.codeHost.issued]) see('token', each);
  for (const each of site.secrets) see('configured', each);
  return seen;
}

test(
  'no secret found in the database, histories, logs or files lets anyone sign in, reset, refresh or call',
  { tags: 'attack' },
  async () => {
    await site.startApi();
    const secrets = await playedSecrets();
    const [user] = await owner(
      `SELECT user_id AS id FROM identities WHERE kind = 'google' AND refresh_token IS NOT NULL`,
    );
    const id = String(user?.id);
    const namesIn = (text: string) =>
      [...secrets].flatMap(([what, secret]) => (text.includes(secret) ? [what] : []));

    const dump = await textsOfRows(site.database.asPlatform());
    expect(dump.join('\n')).toContain(id);
    expect(namesIn(dump.join('\n'))).toEqual([]);

    // Deletes the account, which revokes its token at the provider.
    const [ada] = await owner(`SELECT email FROM users WHERE id = '${id}'`);
    const origin = { address: '192.0.2.1', requestId: 'a-request' };
    await requestAccountDeletion(site.database, id, String(ada?.email), origin);
    const isThere = async () => (await owner(`SELECT FROM users WHERE id = '${id}'`)).length;
    await expect.poll(isThere).toBe(0);
    expect(site.idp.revoked).toHaveLength(1);

    const { runs, texts } = await textsOfHistories(site.temporal);
    expect(runs).toBeGreaterThan(5);
    expect(namesIn([...texts, ...workerLog].join('\n'))).toEqual([]);

    await site.stop();
    // Control: the search finds an id of the same rows, histories and requests.
    const files = await site.filesWith(new Map([['id', id]]));
    expect(files).toEqual(
      expect.arrayContaining([
        'api.log: id',
        expect.stringMatching(/^postgres\/base\//),
        expect.stringMatching(/^postgres\/pg_wal\//),
        expect.stringMatching(/^temporal\.db/),
      ]),
    );
    expect(await site.filesWith(secrets)).toEqual([]);
  },
);
