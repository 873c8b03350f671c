import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { builtProgram, projectRoot } from '../../dev/root.js';
import { readSettings } from '../../dev/settings.js';
import { findCompose, loadProject } from '../../scripts/compose-loader.js';
import { ALL_PROFILES, composeProject, EXAMPLE_VARIABLES } from '../../scripts/compose-rules.js';
import { loadPaymentSettings, loadSettings, loadSummarizerSettings } from '../../src/settings.js';
import { runProgram } from '../support/run-program.js';

/** Building Compose's loader takes minutes, once. */
const BUILD_MS = 40 * 60_000;

let compose: Awaited<ReturnType<typeof findCompose>>;
let secrets: string;
beforeAll(async () => {
  compose = await findCompose(readSettings(process.env).process.cacheDir);
  secrets = await mkdtemp(path.join(tmpdir(), 'aps-compose-'));
  await runProgram(['scripts/secrets.mjs', 'init', secrets]);
}, BUILD_MS);
afterAll(async () => {
  if (secrets) await rm(secrets, { recursive: true, force: true });
});

test('docker-compose.yml follows its rules', async () => {
  expect(await runProgram([builtProgram('scripts', 'compose-check.js')])).toMatch(
    /docker-compose\.yml: \d+ services follow the rules/,
  );
});

test.each(Object.keys(EXAMPLE_VARIABLES))('names %s if it is not set', async (name) => {
  const others = Object.entries(EXAMPLE_VARIABLES).filter(([each]) => each !== name);
  await expect(loadProject(compose, Object.fromEntries(others))).rejects.toThrow(
    `set ${name} in .env.local`,
  );
});

test('every process of ours accepts the settings of its service', async () => {
  const { services } = composeProject.parse(
    await loadProject(compose, { ...EXAMPLE_VARIABLES, ...ALL_PROFILES }),
  );
  /** Returns a service's environment, with the secrets where this test has made them. */
  const environmentOf = (name: string) => {
    const variables = Object.entries(services[name]?.environment ?? {}).map(([each, value]) => [
      each,
      value?.replace(/^\/run\/secrets\//, `${secrets}/`),
    ]);
    return { NODE_ENV: 'production', ...Object.fromEntries(variables) };
  };
  for (const name of ['worker', 'agents-ai']) loadSettings(environmentOf(name));
  expect(loadSettings(environmentOf('api')).agents.isApiBesideHost).toBe(false);
  expect([...loadSettings(environmentOf('worker')).hosts.workerRoles]).toEqual(['workflows']);
  const { hosts } = loadSettings(environmentOf('host'));
  expect([...hosts.workerRoles]).toEqual(['host']);
  expect(hosts.listener).toMatchObject({ url: 'https://host:3003', tls: expect.anything() });
  loadPaymentSettings(environmentOf('payments'));
  loadSummarizerSettings(environmentOf('summarizer'));
});

test('mounts each secret of the examples somewhere, and no other', async () => {
  const project = await loadProject(compose, { ...EXAMPLE_VARIABLES, ...ALL_PROFILES });
  const { secrets: declared } = z
    .object({ secrets: z.record(z.string(), z.unknown()) })
    .parse(project);
  const { services } = composeProject.parse(project);
  const mounted = Object.values(services).flatMap((each) => each.secrets);
  const examples = (await readdir(path.join(projectRoot, 'deploy', 'secrets.example'))).sort();
  expect([...new Set(mounted.map(({ source }) => source))].sort()).toEqual(examples);
  expect(Object.keys(declared).sort()).toEqual(examples);
});

test('the image copies all that a build needs', async () => {
  const [build, ignored] = await Promise.all(
    ['scripts/build.mjs', '.dockerignore'].map((file) =>
      readFile(path.join(projectRoot, file), 'utf8'),
    ),
  );
  const [, list = ''] = /const PRODUCT = \[([^\]]+)\]/.exec(build ?? '') ?? [];
  const folders = [...list.matchAll(/'([a-z]+)/g)].map(([, folder = '']) => folder);
  expect(folders.length).toBeGreaterThan(5);
  for (const folder of folders) expect(ignored).toContain(`\n!${folder}\n`);
});
