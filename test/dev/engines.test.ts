import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSettings } from '../../dev/settings.js';
import { answers } from '../../dev/docker/find-docker.js';
import { identify, isAlive } from '../../dev/processes/process-identity.js';
import { endLeftovers, killAll, startProcess } from '../../dev/processes/process.js';
import { findPostgresBinaries } from '../../dev/postgres/postgres-binaries.js';
import { startPostgres } from '../../dev/postgres/postgres.js';
import { findTemporalCli } from '../../dev/temporal/temporal-binary.js';
import { startTemporal } from '../../dev/temporal/temporal.js';
import { freePort } from '../../dev/ports.js';

let folder: string;
let runDir: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-engines-'));
  await chmod(folder, 0o711);
  runDir = path.join(folder, 'run');
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
});

const postgresOptions = async () => ({
  dataDir: path.join(folder, 'postgres'),
  runDir,
  port: await freePort(),
  password: 'a/b c',
});

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined); // the server is killed under it
  await client.connect();
  const { rows } = await client.query<Record<string, unknown>>(text);
  await client.end();
  return rows.map((row) => Object.values(row)[0]);
}

test('PostgreSQL keeps its data, in UTF-8, when it was killed with an old lock in place', async () => {
  const options = await postgresOptions();
  const first = await startPostgres(options);
  expect(await query(first.superuserUrl, 'show server_encoding')).toEqual(['UTF8']);
  await query(first.superuserUrl, 'create table kept as select 42 as answer');
  await first.process.stop(0);
  expect(existsSync(path.join(options.dataDir, 'postmaster.pid'))).toBe(true);

  const second = await startPostgres(options);
  expect(await query(second.superuserUrl, 'select answer from kept')).toEqual([42]);
  await second.stop();
  expect(second.process.hasEnded()).toBe(true);
});

test('PostgreSQL starts although its lock names another program that is alive', async () => {
  const options = await postgresOptions();
  await (await startPostgres(options)).stop();
  await writeFile(path.join(options.dataDir, 'postmaster.pid'), `${process.pid}\n`);
  await (await startPostgres(options)).stop();
});

test('PostgreSQL starts where only its starter may enter', async () => {
  const closed = path.join(folder, 'closed');
  await mkdir(closed, { mode: 0o700 });
  const { initdb } = await findPostgresBinaries();
  const native = path.dirname(path.dirname(initdb));
  await cp(native, path.join(closed, 'native'), { recursive: true, verbatimSymlinks: true });
  const binaries = {
    initdb: path.join(closed, 'native', 'bin', 'initdb'),
    postgres: path.join(closed, 'native', 'bin', 'postgres'),
  };
  const options = { ...(await postgresOptions()), dataDir: path.join(closed, 'data'), binaries };
  const postgres = await startPostgres(options);
  expect(await query(postgres.superuserUrl, 'select 42')).toEqual([42]);
  await postgres.stop();
});

test('Temporal keeps its state in its file, and has the search attributes', async () => {
  const cli = await findTemporalCli(readSettings(process.env));
  const options = {
    cli,
    runDir,
    port: await freePort(),
    uiPort: await freePort(),
    databaseFile: path.join(folder, 'temporal.db'),
  };
  for (let time = 0; time < 2; time++) {
    const temporal = await startTemporal(options);
    const answer = await fetch(`${temporal.uiUrl}/api/v1/namespaces/default/search-attributes`);
    expect(await answer.json()).toMatchObject({
      customAttributes: {
        AgentId: 'INDEXED_VALUE_TYPE_KEYWORD',
        AgentOwner: 'INDEXED_VALUE_TYPE_KEYWORD',
        AgentPhase: 'INDEXED_VALUE_TYPE_KEYWORD',
      },
    });
    await temporal.stop();
  }
  expect(existsSync(options.databaseFile)).toBe(true);
});

test('a number that another process has by now is not taken for the recorded one', async () => {
  const self = await identify(process.pid);
  expect(await isAlive(self ?? { pid: 0, startedAt: '' })).toBe(true);
  expect(await isAlive({ pid: process.pid, startedAt: 'earlier' })).toBe(false);
});

test('what a killed start left running is ended by the next', async () => {
  const left = await startProcess({
    name: 'sleeper',
    command: process.execPath,
    args: ['-e', 'setInterval(() => {}, 1000)'],
    runDir,
  });
  expect(await endLeftovers(runDir)).toEqual(['sleeper']);
  expect(await left.ended).toBe('ended by SIGTERM');
  expect(await endLeftovers(runDir)).toEqual([]);
});

test('an engine that is not there does not answer', async () => {
  expect(await answers(`unix://${folder}/docker.sock`)).toBe(false);
  expect(await answers(`tcp://127.0.0.1:${await freePort()}`)).toBe(false);
});
