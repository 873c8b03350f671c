import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { HANGS_MS } from './until.js';

/** Path of the browser. */
export const CHROMIUM = process.env.TEST_CHROMIUM ?? '/usr/bin/chromium-headless-shell';

/** True if a browser is installed; `npm test` installs one if possible (Debian's chromium-headless-shell). */
export const hasBrowser = existsSync(CHROMIUM);

/** Fixed address of the web API in the browser, for settings that are read before its port is known. */
export const SITE = 'http://platform.localhost';

/** A page of a new browser context and its console errors. */
export interface Visitor {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Console errors: violations of the content security policy and failed scripts. */
  readonly complaints: readonly string[];
}

/**
 * Starts a browser that maps `SITE` to the web API.
 *
 * @param webUrl address of the web API.
 */
export function startBrowser(webUrl: string): Promise<Browser> {
  const rule = `MAP ${new URL(SITE).host} ${new URL(webUrl).host}`;
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [`--host-resolver-rules=${rule}`],
    timeout: HANGS_MS,
  });
}

export async function newVisitor(browser: Browser): Promise<Visitor> {
  // Width of a phone, and the user agent of a real browser, as bots may not register.
  const context = await browser.newContext({
    baseURL: SITE,
    viewport: { width: 375, height: 700 },
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  });
  context.setDefaultTimeout(HANGS_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    // The page itself shows refused responses.
    const isAnswer = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { page, context, complaints };
}
