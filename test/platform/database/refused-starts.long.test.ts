import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../dev/ports.js';
import { builtProgram } from '../../../dev/root.js';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { runProgram } from '../../support/run-program.js';
import { testTemporal, type TestTemporal } from '../../support/temporal.js';
import { queryRows } from './catalog.js';

let database: TestDatabase;
let temporal: TestTemporal;
let dataDir: string;
beforeAll(async () => {
  [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
  dataDir = await mkdtemp(path.join(tmpdir(), 'aps-refused-'));
});
afterAll(async () => {
  await Promise.all([database?.close(), temporal?.close()]);
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

/** Runs a program with a database. @returns its output, which a failure to start ends. */
async function outputOf(
  program: string,
  url: string,
  others: Readonly<Record<string, string>> = {},
): Promise<string> {
  const made = {
    DATABASE_URL: url,
    DATA_DIR: dataDir,
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    ...others,
    ...(program === 'worker/payments.js' && { OPERATOR_PRIVATE_KEY: generatePrivateKey() }),
  };
  const env = Object.entries(testEnvironment(made)).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const started = runProgram([builtProgram(...program.split('/'))], Object.fromEntries(env));
  return started.then(
    () => `${program} did not fail`,
    (error: Error) => error.message,
  );
}

const PROGRAMS = ['api/main.js', 'api/containers/main.js', 'worker/main.js', 'worker/payments.js'];

test("no process starts as the tables' owner", async () => {
  const outputs = await Promise.all(PROGRAMS.map((each) => outputOf(each, database.ownerUrl)));
  for (const output of outputs) {
    expect(output).toMatch(/exited with 1:[^]*The role "\w+" of DATABASE_URL owns the tables/);
  }
});

test('the API does not start as a superuser', async () => {
  expect(await outputOf('api/main.js', await database.roleWith('SUPERUSER'))).toMatch(
    /exited with 1:[^]*The role "\w+" of DATABASE_URL is a superuser/,
  );
});

test('no process that uses workflows starts with a namespace that Temporal does not have', async () => {
  const absent = { TEMPORAL_ADDRESS: temporal.address, TEMPORAL_NAMESPACE: 'absent' };
  const programs = ['api/main.js', 'worker/main.js', 'worker/payments.js'];
  const outputs = await Promise.all(
    programs.map((each) => outputOf(each, database.url, { ...absent })),
  );
  for (const output of outputs) {
    expect(output).toMatch(
      /exited with 1:[^]*has no namespace "absent": run temporal operator namespace create --namespace absent/,
    );
  }
});

test.each([
  ['api/main.js', 'WEB_PORT'],
  ['api/main.js', 'BACKEND_PORT'],
  ['api/containers/main.js', 'AGENT_AI_PORT'],
  ['api/summarizer/main.js', 'SUMMARIZER_PORT'],
])('%s does not start if the port in %s is occupied', async (program, variable) => {
  const taken = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo; // never a string for a TCP listener
  const ports = ['WEB_PORT', 'BACKEND_PORT', 'METRICS_PORT', 'SUMMARIZER_METRICS_PORT'];
  const output = await outputOf(program, database.url, {
    ...Object.fromEntries(
      await Promise.all(ports.map(async (each) => [each, String(await freePort())])),
    ),
    AGENT_AI_HOST: '127.0.0.1',
    HOST: '127.0.0.1',
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    [variable]: String(port),
  });
  expect(output).toMatch(
    new RegExp(
      `exited with 1:[^]*Cannot listen on 127.0.0.1:${port}: .* set ${variable} to another port`,
    ),
  );
});

test('neither the API nor the migration without owner starts if a migration is missing', async () => {
  const last = MIGRATIONS.at(-1)?.name;
  await queryRows(database.ownerUrl, `DELETE FROM schema_migrations WHERE name = '${last}'`);
  const fault = `exited with 1:[^]*lacks the migration ${last}: run dist/scripts/migrate.js`;
  expect(await outputOf('api/main.js', database.url)).toMatch(new RegExp(fault));
  const migrating = runProgram([builtProgram('scripts', 'migrate.js')], {
    NODE_ENV: 'production',
    DATABASE_URL: `${database.url}?sslmode=disable`,
    DATABASE_OWNER_URL: '',
  });
  await expect(migrating).rejects.toThrow(new RegExp(fault));
});
