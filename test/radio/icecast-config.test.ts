import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { icecastConfig } from '../../src/radio/icecast-config.js';

const given = {
  listen: { address: '127.0.0.1', port: 8000 },
  backendUrl: 'http://127.0.0.1:3001',
  adminPassword: 'an-admin-password',
  authSecret: 'a-secret-of-admissions',
};
const config = icecastConfig(given);

/** Returns the texts of all elements of a name, without blanks around. */
const texts = (name: string, xml = config) =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text]) => text?.trim());

test.each([
  ['clients', '2000'],
  ['sources', '100'],
  ['queue-size', '524288'],
  ['burst-size', '65536'],
  ['header-timeout', '15'],
  ['source-timeout', '10'],
  ['fileserve', '0'],
  ['accesslog', 'null'],
  ['errorlog', '-'],
  ['bind-address', '127.0.0.1'],
  ['port', '8000'],
])('sets the element %s to %s', (name, text) => {
  expect(texts(name)).toEqual([text]);
});

test('has a mount for each format, which requests an admission for each source', () => {
  expect(texts('mount-name')).toEqual(['/*.mp3', '/*.ogg', '/*.aac']);
  const options = [...config.matchAll(/<option name="(\w+)" value="([^"]*)"/g)];
  expect(options.map(([, name, value]) => [name, value])).toEqual(
    texts('mount-name').flatMap(() => [
      ['stream_auth', 'http://127.0.0.1:3001/api/radio/authorize'],
      ['username', 'icecast'],
      ['password', 'a-secret-of-admissions'],
    ]),
  );
  for (const [name, text] of [
    ['max-listeners', '100'],
    ['charset', 'UTF-8'],
    ['public', '0'],
  ] as const) {
    expect(texts(name)).toEqual([text, text, text]);
  }
  expect(config.match(/<mount [^>]*>/g)).toEqual(Array(3).fill('<mount type="normal">'));
});

test('has no password of sources, and no content type in place of that of a source', () => {
  expect(texts('admin-password')).toEqual(['an-admin-password']);
  expect(config).not.toMatch(/<(source|relay)-password|<type>/);
});

test('changes the account of a program that root starts, and of no other', () => {
  expect(config).not.toContain('<changeowner>');
  const asRoot = icecastConfig({ ...given, account: { user: 'icecast2', group: 'icecast' } });
  expect([texts('user', asRoot), texts('group', asRoot)]).toEqual([['icecast2'], ['icecast']]);
});

test('escapes what the operator sets', () => {
  const odd = icecastConfig({ ...given, adminPassword: '</admin-password><x a="&\'' });
  expect(texts('admin-password', odd)).toEqual([
    '&#60;/admin-password&#62;&#60;x a=&#34;&#38;&#39;',
  ]);
});

test('has more places than the proxy before Icecast lets through, so that the platform finds one', () => {
  const proxy = readFileSync(path.join(projectRoot, 'deploy', 'haproxy.cfg'), 'utf8');
  const refused = Number(/fe_conn gt (\d+)/.exec(proxy)?.[1]);
  const accepted = Number(/maxconn (\d+)/.exec(proxy)?.[1]);
  expect(refused).toBeLessThanOrEqual(Number(texts('clients')[0]) - 100);
  // Connections that HAProxy does not accept would wait instead.
  expect(accepted).toBeGreaterThan(refused);
});
