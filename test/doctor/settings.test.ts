import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { examine } from '../../src/doctor/check.js';
import { settingsCheck } from '../../src/doctor/settings-check.js';
import { AREAS } from '../../src/settings.js';

const VALID = {
  DATABASE_URL: 'postgres://serving@127.0.0.1/aps',
  ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
};

const findingsOf = (env: Readonly<Record<string, string>>) => examine([settingsCheck(AREAS)], env);

test('accepts valid settings', async () => {
  expect(await findingsOf(VALID)).toMatchObject([{ status: 'ok' }]);
});

test('names each problem in a line', async () => {
  const findings = await findingsOf({ ...VALID, WEB_PORT: 'x', BACKEND_PORT: '-1' });
  expect(findings).toMatchObject([
    { status: 'failure', text: expect.stringContaining('WEB_PORT must be a port') },
    { status: 'failure', text: expect.stringContaining('BACKEND_PORT must be a port') },
  ]);
});

test('names the wrong entry in the file of models', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-models-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'models.json');
  await writeFile(file, JSON.stringify({ models: [{ family: 'odd-one' }] }));
  expect(await findingsOf({ ...VALID, AI_MODELS_FILE: file })).toMatchObject([
    { status: 'failure', text: expect.stringMatching(/AI_MODELS_FILE names .*odd-one/) },
  ]);
});

test('warns of variables that only one process may have', async () => {
  const findings = await findingsOf({ ...VALID, DATABASE_OWNER_URL: 'postgres://owner@db/aps' });
  expect(findings).toMatchObject([
    { status: 'ok' },
    { status: 'warning', text: expect.stringMatching(/^DATABASE_OWNER_URL is set/) },
  ]);
});
