import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Listening } from '../../api/http/server.js';
import { createWeb } from '../../api/web/web.js';
import { hasBrowser, newVisitor, startBrowser, type Visitor } from '../support/browser.js';
import { databaseAlone } from '../support/dependencies.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let browser: Browser;

const PASSWORD = 'a-password-of-tests';

describe.skipIf(!hasBrowser)('in a browser', () => {
  beforeAll(async () => {
    database = await testDatabase();
    alone = await databaseAlone(database);
    web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await web?.close();
    await alone?.close();
    await database?.close();
  });

  /** Registers, and signs in, on the pages. */
  async function signUp({ page }: Visitor, email = `${randomUUID()}@example.com`) {
    await page.goto('/login');
    const registration = page.getByRole('region', { name: 'New here?' });
    await registration.getByLabel('Email').fill(email);
    await registration.getByLabel('Password').fill(PASSWORD);
    await registration.getByLabel('Name').fill('Ada');
    await registration.getByRole('button').click();
    await page.getByText('Your account is there.').waitFor();
    await signIn(page, email);
    return email;
  }

  async function signIn(page: Visitor['page'], email: string, password = PASSWORD) {
    const form = page.getByRole('region', { name: 'With your password' });
    await form.getByLabel('Email').fill(email);
    await form.getByLabel('Password').fill(password);
    await form.getByRole('button').click();
    await page.waitForURL('**/dashboard');
  }

  test('people register, sign in, make and delete a key, and sign out', async () => {
    const visitor = await newVisitor(browser, web.url);
    const { page, complaints } = visitor;
    await signUp(visitor);
    const keys = page.getByRole('region', { name: 'API keys' });
    await keys.getByLabel('Name of a new key').fill('of a program');
    await keys.getByRole('button', { name: 'Make a key' }).click();
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
    expect(complaints).toEqual([]);
    await visitor.context.close();
  });

  test('people end a session of another browser, which is signed out', async () => {
    const [here, there] = [await newVisitor(browser, web.url), await newVisitor(browser, web.url)];
    const email = await signUp(here);
    await there.page.goto('/login');
    await signIn(there.page, email);
    await here.page.reload();
    await here.page.getByRole('button', { name: /^End the session/ }).click();
    await here.page.getByText('The session has ended.').waitFor();
    await there.page.reload();
    await there.page.waitForURL('**/login');
    for (const { context } of [here, there]) await context.close();
  });

  test('what is refused is said beside the form, where the focus then is', async () => {
    const visitor = await newVisitor(browser, web.url);
    const { page } = visitor;
    await signUp(visitor);
    const form = page.getByRole('region', { name: 'Password' });
    await form.getByLabel('Current password').fill('a guess');
    await form.getByLabel('New password').fill('another password');
    await form.getByRole('button').click();
    const said = form.getByRole('status');
    await said.getByText('Current password is incorrect.').waitFor();
    expect(await said.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(
      true,
    );
    await visitor.context.close();
  });

  test('a page is used by the keyboard alone, and fits a telephone', async () => {
    const visitor = await newVisitor(browser, web.url);
    const { page } = visitor;
    const email = await signUp(visitor);
    await visitor.context.clearCookies();
    await page.goto('/login');
    await page.getByLabel('Email').first().focus();
    await page.keyboard.type(email);
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/dashboard');
    for (const path of ['/login', '/dashboard']) {
      await page.goto(path);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect([path, width]).toEqual([path, 375]);
    }
    await visitor.context.close();
  });
});
