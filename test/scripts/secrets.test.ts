import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { loadPaymentSettings } from '../../src/settings.js';
import { runProgram } from '../support/run-program.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-secrets-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const init = () => runProgram(['scripts/secrets.mjs', 'init', folder]);
const read = async (name: string) => (await readFile(path.join(folder, name), 'utf8')).trim();

/** The script refuses other users, because containers could not read their files. */
const asReader = test.runIf([0, 1000].includes(process.getuid?.() ?? -1));

asReader('makes every secret of the examples, readable only for one user', async () => {
  const output = await init();
  const names = await readdir(folder);
  const examples = await readdir(path.join(projectRoot, 'deploy', 'secrets.example'));
  expect(names.sort()).toEqual(examples.sort());
  for (const name of names) {
    const { mode, uid } = await stat(path.join(folder, name));
    expect([name, mode & 0o777, uid]).toEqual([name, 0o600, 1000]);
  }
  expect(output).toContain('Empty, and so not set; fill in what you use:');
  expect(await read('operator_private_key')).toBe('');
});

asReader('makes secrets that fit together, and that the platform accepts', async () => {
  await init();
  expect(await read('database_url')).toContain(`:${await read('database_password')}@postgres:`);
  expect(await read('database_owner_url')).toContain(await read('database_owner_password'));
  expect(`requirepass ${new URL(await read('redis_url')).password}`).toBe(
    await read('redis_config'),
  );
  const certificate = new X509Certificate(await read('host_tls_cert'));
  expect(certificate.checkHost('host')).toBe('host');
  const files = Object.fromEntries(
    [
      ...['DATABASE_URL', 'ENCRYPTION_KEY', 'HOST_TLS_CERT', 'HOST_TLS_KEY', 'INTERNAL_API_KEY'],
      ...['OPERATOR_PRIVATE_KEY', 'REDIS_URL', 'SMTP_URL', 'OPENAI_API_KEY'],
    ].map((name) => [`${name}_FILE`, path.join(folder, name.toLowerCase())]),
  );
  const digest = `sha256:${'0'.repeat(64)}`;
  const settings = loadPaymentSettings({
    ...files,
    NODE_ENV: 'production',
    PRIVATE_HOSTS: 'redis',
    AGENT_EGRESS_IMAGE: digest,
    AGENT_RUNTIME_IMAGE: `openclaw@${digest}`,
  });
  expect(settings.mail.available).toBe(false);
});

asReader('overwrites no secret, and makes those that are missing', async () => {
  await init();
  await writeFile(path.join(folder, 'database_password'), 'mine');
  await rm(path.join(folder, 'database_url'));
  const key = await read('encryption_key');
  expect(await init()).toContain('Made 1 of ');
  expect([await read('database_password'), await read('encryption_key')]).toEqual(['mine', key]);
  expect(await read('database_url')).toContain(':mine@');
});
