// @module-tag attack
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createSummarizer } from '../../../api/summarizer/summarizer.js';
import { Pages } from '../../../src/pages/pages.js';
import { OutboundClient } from '../../../src/platform/outbound/outbound.js';
import { buyerHeaders } from '../../../src/platform/http/buyer-header.js';
import { loadSummarizerSettings } from '../../../src/settings.js';
import { readingProgram } from '../../support/reading-program.js';

const KEY = 'k'.repeat(32);

/** Requests of one client a minute. */
const MAX = 120;

let pages: Pages;
let listening: Listening;
beforeAll(() => {
  pages = new Pages({ outbound: new OutboundClient(), program: readingProgram() });
});
afterAll(() => pages?.close());

async function serve(env: Readonly<Record<string, string>>): Promise<void> {
  const log = pino({ level: 'silent' });
  const { chain, http } = loadSummarizerSettings(env);
  listening = await createSummarizer({ pages, chain, http, log }).listen('127.0.0.1', 0);
}

/** Requests a page that is refused, which costs nothing. */
const statusOf = async (headers: Readonly<Record<string, string>>) => {
  const sent = await fetch(`${listening.url}/api/read`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ url: 'ftp://example.com/' }),
  });
  await sent.text();
  return sent.status;
};

const REFUSED = 403;

test('limits each buyer that the web API names, and not the web API itself', async () => {
  await serve({ SUMMARIZER_KEY: KEY });
  const [greedy, other] = [buyerHeaders(KEY, 'greedy'), buyerHeaders(KEY, 'other')];
  for (let n = 0; n < MAX; n++) expect(await statusOf(greedy)).toBe(REFUSED);
  expect(await statusOf(greedy)).toBe(429);
  expect(await statusOf(other)).toBe(REFUSED);
  expect(await statusOf({})).toBe(REFUSED);
  await listening.close();
});

test.each([
  ['without the key', () => ({ SUMMARIZER_KEY: KEY }), () => ({})],
  ['with another key', () => ({ SUMMARIZER_KEY: KEY }), () => ({ authorization: 'Bearer other' })],
  ['where no key is set', () => ({}), () => ({ authorization: 'Bearer ' })],
])('counts a stranger who names buyers %s by the address', async (_, env, proof) => {
  await serve(env());
  const named = (n: number) => ({ ...proof(), 'x-buyer': `buyer-${n}` });
  for (let n = 0; n < MAX; n++) expect(await statusOf(named(n))).toBe(REFUSED);
  expect(await statusOf(named(MAX))).toBe(429);
  await listening.close();
});
