import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../../dev/root.js';
import { platformOutbound } from '../../../src/platform/outbound/platform-outbound.js';
import { loadSummarizerSettings } from '../../../src/settings.js';
import { testEnvironment } from '../../support/platform-environment.js';

const attack = { tags: 'attack' };

test('refuses all public names of the platform', attack, async () => {
  const env = testEnvironment({
    WEB_URL: 'https://app.example.test',
    BACKEND_URL: 'https://backend.example.test',
    BACKEND_PUBLIC_URL: 'https://programs.example.test',
    ALLOWED_HOSTS: 'other-app.example.test, [2001:db8::1]',
  });
  const client = platformOutbound(loadSummarizerSettings(env), {
    resolve: () => Promise.resolve(['93.184.215.14']),
  });
  const { signal } = new AbortController();
  for (const name of ['app', 'backend', 'programs', 'other-app']) {
    await expect(client.addressesOf(`https://${name}.example.test/`, signal)).rejects.toThrow(
      'an address of the platform itself',
    );
  }
  const other = await client.addressesOf('https://other.example.test/', signal);
  expect(other.addresses).toEqual(['93.184.215.14']);
});

/** The helper beside an agent's volume has no network. */
const WITHOUT_NETWORK = 'src/workspace/helper-program.ts';

test('no process creates another client for addresses that people give', attack, () => {
  const sources = ['api', 'src', 'worker'].flatMap((folder) =>
    readdirSync(path.join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => path.join(folder, name)),
  );
  const creating = sources.filter((file) =>
    readFileSync(path.join(projectRoot, file), 'utf8').includes('new OutboundClient('),
  );
  expect(creating.sort()).toEqual(['src/platform/outbound/platform-outbound.ts', WITHOUT_NETWORK]);
});
