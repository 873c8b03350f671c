import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

const CHROMIUM = process.env.TEST_CHROMIUM ?? '/usr/bin/chromium-headless-shell';

/** Whether there is a browser; `npm test` installs one where it can (Debian's chromium-headless-shell). */
export const hasBrowser = existsSync(CHROMIUM);

/** As tests wait for anything: longer than it takes on the busiest machine. */
const PATIENCE_MS = 150_000;

/** Where the browser finds the web API, whatever its port: for settings that are read before it listens. */
export const SITE = 'http://platform.localhost';

/** A page of a browser that nobody has used, and what it complained about. */
export interface Visitor {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors in the console: refusals by the policy, scripts that failed. */
  readonly complaints: readonly string[];
}

/** @param webUrl where `SITE` is. */
export function startBrowser(webUrl: string): Promise<Browser> {
  const rule = `MAP ${new URL(SITE).host} ${new URL(webUrl).host}`;
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [`--host-resolver-rules=${rule}`],
    timeout: PATIENCE_MS,
  });
}

export async function newVisitor(browser: Browser): Promise<Visitor> {
  // Of a telephone's width; and a name of a browser's own, because robots may not register.
  const context = await browser.newContext({
    baseURL: SITE,
    viewport: { width: 375, height: 700 },
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    // What an answer refuses is told by the page.
    const isAnswer = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { page, context, complaints };
}
