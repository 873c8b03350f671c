import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createWeb } from '../../../api/web/web.js';
import { ANY_PORTS, startStandIns, type StandIns } from '../../../dev/accounts/stand-ins.js';
import { queryRows } from '../../platform/database/catalog.js';
import { hasBrowser, newVisitor, SITE, startBrowser, type Visitor } from '../../support/browser.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { sendWaitingMails } from '../../support/mails.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let browser: Browser;
let dataDir: string | undefined;
let standIns: StandIns;
const visitors: Visitor[] = [];

const PASSWORD = 'a-password-of-tests';

beforeAll(async () => {
  if (!hasBrowser) return;
  database = await testDatabase();
  dataDir = await mkdtemp(path.join(tmpdir(), 'aps-browser-'));
  standIns = await startStandIns({ dataDir, webUrl: SITE }, ANY_PORTS);
  const { SMTP_URL, ...providers } = standIns.env;
  alone = await databaseAlone(database, undefined, { WEB_URL: SITE, ...providers });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
  browser = await startBrowser(web.url);
});
afterEach(async ({ task }) => {
  for (const { complaints, context, page } of visitors.splice(0)) {
    if (task.result?.state === 'fail') await report(page);
    await context.close();
    expect(complaints).toEqual([]);
  }
});
afterAll(async () => {
  await browser?.close();
  await web?.close();
  await alone?.close();
  await database?.close();
  await standIns?.close();
  if (dataDir !== undefined) await rm(dataDir, { recursive: true });
});

/** Prints the page that a failed test left open. */
async function report(page: Page): Promise<void> {
  console.error(`${page.url()} shows:\n${await page.locator('body').innerText()}`);
}

async function visit(): Promise<Page> {
  const visitor = await newVisitor(browser);
  visitors.push(visitor);
  return visitor.page;
}

/** Registers through the page. @returns the account's email address. */
async function register(page: Page): Promise<string> {
  const email = `${randomUUID()}@example.com`;
  await page.goto('/login');
  const registration = page.getByRole('region', { name: 'New here?' });
  await registration.getByLabel('Email').fill(email);
  await registration.getByLabel('Password').fill(PASSWORD);
  await registration.getByLabel('Name').fill('Ada');
  await registration.getByRole('button').click();
  await page.getByText('Your account is ready.').waitFor();
  return email;
}

/** Creates an account and opens its dashboard. @returns the account's email address. */
async function signUp(page: Page): Promise<string> {
  const email = `${randomUUID()}@example.com`;
  const body = { email, password: PASSWORD, name: 'Ada' };
  await call(web.url, 'POST', '/api/register', { body });
  const { headers } = await call(web.url, 'POST', '/api/auth/login', { body });
  const [, value = ''] = /^service-session=([^;]+)/.exec(headers.get('set-cookie') ?? '') ?? [];
  await page.context().addCookies([{ name: 'service-session', value, url: SITE }]);
  await page.goto('/dashboard');
  return email;
}

async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  const form = page.getByRole('region', { name: 'With your password' });
  await form.getByLabel('Email').fill(email);
  await form.getByLabel('Password').fill(password);
  await form.getByRole('button').click();
}

/** Signs in at the stand-in provider with this email address. */
async function sayWho(page: Page, email: string): Promise<void> {
  await page.getByRole('heading', { name: /for developers$/ }).waitFor();
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Continue', exact: true }).click();
  await page.waitForURL('**/dashboard*');
}

/** Makes the sessions of an account a day old. */
async function outdateSignIn(email: string): Promise<void> {
  await queryRows(
    database.ownerUrl,
    `UPDATE sessions SET created_at = now() - interval '1 day'
      WHERE user_id = (SELECT id FROM users WHERE email = '${email}')`,
  );
}

/** Adds a wallet to the page that approves every request. */
async function giveWallet(page: Page): Promise<void> {
  const account = privateKeyToAccount(generatePrivateKey());
  await page.exposeFunction('askWallet', async (method: string, params: readonly Hex[] = []) => {
    const [raw = '0x'] = params;
    return method === 'personal_sign'
      ? await account.signMessage({ message: { raw } })
      : [account.address];
  });
  await page.addInitScript(
    'window.ethereum = { request: ({ method, params }) => askWallet(method, params) };',
  );
}

/** Returns the link in the last mail to an address. */
async function linkMailedTo(address: string): Promise<string> {
  const mails = await sendWaitingMails(database.db, SITE);
  const { html = '' } = mails.findLast(({ to }) => to === address) ?? {};
  const [, link] = /href="([^"]+)"/.exec(html) ?? [];
  if (link === undefined) throw new Error(`no link was mailed to ${address}`);
  return link;
}

describe.skipIf(!hasBrowser)('web pages in a browser', () => {
  test('registers, confirms the email address by mail and changes the name', async () => {
    const page = await visit();
    const email = await register(page);
    await signIn(page, email);
    const profile = page.getByRole('region', { name: 'Profile' });
    await profile.getByText('(not confirmed)').waitFor();
    await page.goto(await linkMailedTo(email));
    await page.getByRole('button', { name: 'Confirm the address' }).click();
    await page.getByText('Your address is confirmed.').waitFor();
    await profile.getByText('(confirmed)').waitFor();
    await profile.getByLabel('New name').fill('Countess of Lovelace');
    await profile.getByRole('button', { name: 'Change the name' }).click();
    await profile.getByText('Countess of Lovelace', { exact: true }).waitFor();
  });

  test('a mailed link stays valid after a program or another browser has opened it', async () => {
    const email = await signUp(await visit());
    const page = await visit();
    const link = await linkMailedTo(email);
    await page.goto(link);
    await page.goto(link);
    await signIn(page, email);
    await page.getByRole('button', { name: 'Confirm the address' }).click();
    await page.getByText('Your address is confirmed.').waitFor();
    await page.goto(link);
    await page.getByRole('button', { name: 'Confirm the address' }).click();
    await page.getByText('Invalid or expired token.').waitFor();
  });

  test('resets a forgotten password by mail', async () => {
    const page = await visit();
    const email = await signUp(page);
    const forgetful = await visit();
    await forgetful.goto('/login');
    await forgetful.getByRole('link', { name: 'Forgot your password?' }).click();
    await forgetful.getByLabel('Email').fill(email);
    await forgetful.getByRole('button', { name: 'Send me a link' }).click();
    await forgetful.getByText('a link was sent to it').waitFor();
    await forgetful.goto(await linkMailedTo(email));
    await forgetful.getByLabel('New password').fill('another password of tests');
    await forgetful.getByRole('button', { name: 'Set the password' }).click();
    await forgetful.getByText('Your new password is set').waitFor();
    await signIn(forgetful, email, 'another password of tests');
    await forgetful.waitForURL('**/dashboard');
    await page.reload();
    await page.waitForURL('**/login');
  });

  test('changes the email address once the new one is confirmed', async () => {
    const page = await visit();
    await signUp(page);
    const wanted = `${randomUUID()}@example.com`;
    const profile = page.getByRole('region', { name: 'Profile' });
    await profile.getByLabel('New email').fill(wanted);
    await profile.getByRole('button', { name: 'Change the email' }).click();
    await profile.getByText('A link was sent to the new address').waitFor();
    await page.goto(await linkMailedTo(wanted));
    await page.getByRole('button', { name: 'Confirm the address' }).click();
    await page.getByText('Your address is confirmed.').waitFor();
    await profile.getByText(`${wanted} (confirmed)`).waitFor();
  });

  test('creates and deletes an API key, and signs out', async () => {
    const page = await visit();
    await signUp(page);
    const keys = page.getByRole('region', { name: 'API keys' });
    await keys.getByLabel('Name of a new key').fill('of a program');
    await keys.getByRole('button', { name: 'Create a key' }).click();
    const key = await keys.getByRole('status').locator('code').textContent();
    expect(key).toMatch(/^sk_.{20}/);
    await page.reload();
    expect(await page.content()).not.toContain(key);
    await keys.getByRole('button', { name: 'Delete the key of a program' }).click();
    await page.getByText('The key is deleted.').waitFor();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByText('You are signed out.').waitFor();
    await page.goto('/dashboard');
    await page.waitForURL('**/login');
  });

  test("signs in with the browser's wallet, and offers that only if it has one", async () => {
    const page = await visit();
    await page.goto('/login');
    const button = page.getByRole('button', { name: 'Continue with your wallet' });
    expect(await button.isVisible()).toBe(false);
    await giveWallet(page);
    await page.reload();
    await button.click();
    await page.waitForURL('**/dashboard');
    await page.getByText('By wallet on').waitFor();
  });

  test("ending another browser's session signs that browser out", async () => {
    const [here, there] = [await visit(), await visit()];
    const email = await signUp(here);
    await there.goto('/login');
    await signIn(there, email);
    await there.waitForURL('**/dashboard');
    await here.reload();
    await here.getByRole('button', { name: /^End the session/ }).click();
    await here.getByText('The session has ended.').waitFor();
    await there.reload();
    await there.waitForURL('**/login');
  });

  test('signs in through the identity provider and the code host into one account', async () => {
    const page = await visit();
    const email = `${randomUUID()}@example.com`;
    await page.goto('/login');
    await page.locator('a[href="/api/auth/google"]').click();
    await sayWho(page, email);
    await page.getByRole('region', { name: 'Profile' }).getByText(`${email} (confirmed)`).waitFor();
    await page.context().clearCookies();
    await page.goto('/login');
    await page.locator('a[href="/api/auth/github"]').click();
    await sayWho(page, email);
    const linked = page.getByRole('region', { name: 'Linked accounts' });
    await linked
      .getByText(/Linked on/)
      .nth(1)
      .waitFor();
    expect(await linked.getByRole('listitem').count()).toBe(2);
  });

  test('links an external account and unlinks it', async () => {
    const page = await visit();
    await signUp(page);
    const linked = page.getByRole('region', { name: 'Linked accounts' });
    await linked.locator('#link-google button').click();
    await sayWho(page, `${randomUUID()}@elsewhere.example`);
    await page.getByText('The account is now linked').waitFor();
    await linked.getByRole('button', { name: /^Unlink/ }).click();
    await page.getByText('The account is unlinked').waitFor();
    await linked.getByText('No linked accounts yet').waitFor();
  });

  test('a sensitive action requires a recent sign-in and leads to the sign-in page', async () => {
    const page = await visit();
    const email = await signUp(page);
    await outdateSignIn(email);
    const leaving = page.getByRole('region', { name: 'Your data' });
    await leaving.getByRole('button', { name: /^Download/ }).click();
    await leaving.getByRole('link', { name: 'Sign in again' }).click();
    await signIn(page, email);
    await page.waitForURL('**/dashboard');
    const download = page.waitForEvent('download');
    await leaving.getByRole('button', { name: /^Download/ }).click();
    const file = await (await download).path();
    expect(await readFile(file, 'utf8')).toContain(email);
  });

  test('a link that required a recent sign-in opens after the sign-in, once', async () => {
    const page = await visit();
    const email = await signUp(page);
    await outdateSignIn(email);
    const linked = page.getByRole('region', { name: 'Linked accounts' });
    await linked.locator('#link-google button').click();
    await linked.getByRole('link', { name: 'Sign in again' }).click();
    await signIn(page, email);
    await sayWho(page, `${randomUUID()}@elsewhere.example`);
    await page.getByText('The account is now linked').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  test('deleting the account requires its email address and signs the user out', async () => {
    const page = await visit();
    const email = await signUp(page);
    const leaving = page.getByRole('region', { name: 'Your data' });
    await leaving.getByLabel('Your email').fill(email);
    await leaving.getByRole('button', { name: 'Delete the account' }).click();
    await page.getByText('Your account is being deleted').waitFor();
    await signIn(page, email);
    await page.getByText('Invalid email or password.').waitFor();
  });

  test('shows an error next to its form and moves the focus there', async () => {
    const page = await visit();
    await signUp(page);
    const form = page.getByRole('region', { name: 'Password' });
    await form.getByLabel('Current password').fill('a guess');
    await form.getByLabel('New password').fill('another password');
    await form.getByRole('button').click();
    await form.getByText('Current password is incorrect.').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe(
      'Current password is incorrect.',
    );
  });

  test('the pages work with only the keyboard and fit a phone screen', async () => {
    const page = await visit();
    const email = await signUp(page);
    await page.context().clearCookies();
    await page.goto('/login');
    await page.getByLabel('Email').first().focus();
    await page.keyboard.type(email);
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/dashboard');
    for (const path of ['/login', '/dashboard', '/reset-password', '/verify-email?token=x']) {
      await page.goto(path);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect([path, width]).toEqual([path, 375]);
    }
  });
});
