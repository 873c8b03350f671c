import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { isPrivateServer } from '../../src/ai/models/private-server.js';
import { loadSettings } from '../../src/settings.js';
import { testEnvironment } from '../support/platform-environment.js';
import { testSummarizer, type TestSummarizer } from '../support/summarizer.js';

const README = readFileSync(path.join(projectRoot, 'README.md'), 'utf8');
const blocks = [...README.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
const ofPages = blocks.find((code) => code.startsWith('page()')) ?? '';

let summarizer: TestSummarizer;
beforeAll(async () => {
  summarizer = await testSummarizer((_request, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<title>Rivers</title><p>They end in <a href="/sea">the sea</a>.</p>'),
  );
});
afterAll(() => summarizer?.close());

/** Runs the README's commands against the test servers and returns each printed line. */
async function printed(commands: string): Promise<unknown[]> {
  const here = commands
    .replaceAll('localhost:3100', new URL(summarizer.url).host)
    .replaceAll('https://example.com', summarizer.site);
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', here]);
  return stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

const REFUSED = {
  error: 'The URL leads to a non-public address, which is not allowed',
  code: 'URL_NOT_ALLOWED',
};

test('a page is summarized, extracted and read as the README shows', async () => {
  expect(await printed(ofPages)).toMatchObject([
    { title: 'Rivers', paragraphs: ['They end in the sea.'] },
    { links: [{ href: `${summarizer.site}/sea`, text: 'the sea' }] },
    { text: 'They end in the sea.' },
    REFUSED,
  ]);
});

test('the metadata address is refused in ten spellings', { tags: 'attack' }, async () => {
  const [page = ''] = ofPages.split('\n');
  const hosts = [
    ...['169.254.169.254', '169.254.169.254.', '2852039166', '0xa9fea9fe', '025177524776'],
    ...['0251.0376.0251.0376', '169.254.43518', '[::ffff:169.254.169.254]', '１６９.254.169.254'],
    '[64:ff9b::a9fe:a9fe]',
  ];
  const asked = hosts.map((host) => `page /api/read 'http://${host}/'`);
  expect(await printed([page, ...asked].join('\n'))).toEqual(hosts.map(() => REFUSED));
});

test.each(['OUTBOUND_ALLOW', 'SUMMARIZER_PORT', 'WORKSPACE_ROOT', 'npm run summarizer'])(
  'the README names %s',
  (name) => expect(README).toContain(name),
);

test('the README states the limits of both services and the needs of the explorer', () => {
  const said = README.replace(/\s+/g, ' ');
  for (const each of ['120 a minute', '10 MB', '10 s', '`git` 2.37', '1 MB', '100 commits']) {
    expect(said).toContain(each);
  }
});

test('the line for a local model sets a provider whose list is requested', async () => {
  const [line = ''] = README.match(/^OPENAI_BASE_URL=.* npm start$/m) ?? [];
  const env = Object.fromEntries(
    line
      .split(' ')
      .slice(0, -2)
      .map((setting) => setting.split('=')),
  );
  const needed = { DATABASE_URL: 'postgres://x/y', INTERNAL_API_KEY: 'k' };
  const { provider, providers, privateHosts } = loadSettings(testEnvironment(needed, env)).ai;
  expect(provider).toBe('openai');
  expect(await isPrivateServer(providers.openai?.baseUrl ?? '', privateHosts)).toBe(true);
});
