// @module-tag attack
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { projectRoot } from '../../../dev/root.js';
import { send } from '../../support/http.js';
import { testSummarizer, type TestSummarizer } from '../../support/summarizer.js';

const program = pathToFileURL(path.join(projectRoot, 'test', 'support', 'endless-reader.mjs'));

let fetched = 0;
let summarizer: TestSummarizer;
afterEach(() => summarizer?.close());

async function reading(processorMs: number, signal?: AbortSignal) {
  fetched = 0;
  summarizer = await testSummarizer(
    (_request, response) => {
      fetched++;
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>It does not end.</p>');
    },
    { program, reading: { processorMs } },
  );
  const { site, url } = summarizer;
  const options = { body: { url: site }, ...(signal && { signal }) };
  return { answer: send(url, 'POST', '/api/read', options) };
}

test('answers /health whatever a page does to its reader', async () => {
  const leaving = new AbortController();
  let isOver = false;
  const { answer } = await reading(1_000_000, leaving.signal);
  const over = answer.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  await expect.poll(() => fetched).toBe(1);
  for (let times = 0; times < 5; times++) {
    expect((await send(summarizer.url, 'GET', '/health')).status).toBe(200);
  }
  expect(isOver).toBe(false);
  leaving.abort();
  await over;
});

test('stops reading a page that exceeds its processor time', async () => {
  const { answer } = await reading(200);
  const response = await answer;
  expect([response.status, await response.json()]).toEqual([
    502,
    { error: 'The page is too complex to be read', code: 'TOO_COMPLEX' },
  ]);
  expect((await send(summarizer.url, 'GET', '/health')).status).toBe(200);
});
