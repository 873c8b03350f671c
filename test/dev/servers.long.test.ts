import { existsSync, readFileSync } from 'node:fs';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { installPackages } from '../../dev/apt.js';
import { readSettings } from '../../dev/settings.js';
import {
  dockerDaemonPlace,
  startAgain,
  startDockerDaemon,
  type StartOutcome,
} from '../../dev/docker/docker-daemon.js';
import { answers } from '../../dev/docker/find-docker.js';
import { ensureOwnFolder } from '../../dev/docker/own-folder.js';
import { ensureRemappedUser } from '../../dev/docker/remapped-user.js';
import { chooseUserNamespaces, engineFolders } from '../../dev/docker/user-namespaces.js';
import { identify, isAlive } from '../../dev/processes/process-identity.js';
import { endLeftovers, killAll, lastLines, startProcess } from '../../dev/processes/process.js';
import { poll } from '../../dev/poll.js';
import { Stranger } from '../../dev/agent-image/stranger.js';
import { run } from '../../dev/processes/run.js';
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
  client.on('error', () => undefined); // the test kills the server
  await client.connect();
  const { rows } = await client.query<Record<string, unknown>>(text);
  await client.end();
  return rows.map((row) => Object.values(row)[0]);
}

test('a process that is just starting is ended with all others', async () => {
  const args = ['-e', 'setInterval(() => {}, 1_000)'];
  const starting = startProcess({ name: 'late', command: process.execPath, args, runDir });
  await killAll();
  expect((await starting).hasEnded()).toBe(true);
});

test('PostgreSQL keeps its data, in UTF-8, after a kill that left its lock behind', async () => {
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

test('PostgreSQL starts although its lock names an unrelated running program', async () => {
  const options = await postgresOptions();
  await (await startPostgres(options)).stop();
  await writeFile(path.join(options.dataDir, 'postmaster.pid'), `${process.pid}\n`);
  await (await startPostgres(options)).stop();
});

test('PostgreSQL starts in a folder that only its starter may enter', async () => {
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

test('Temporal keeps its state in its file and has the search attributes', async () => {
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

test('a process id reused by another process does not match the recorded process', async () => {
  const self = await identify(process.pid);
  expect(await isAlive(self ?? { pid: 0, startedAt: '' })).toBe(true);
  expect(await isAlive({ pid: process.pid, startedAt: 'earlier' })).toBe(false);
});

test('a process left by a killed start is ended by the next start', async () => {
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

test('a missing engine does not answer', async () => {
  expect(await answers(`unix://${folder}/docker.sock`)).toBe(false);
  expect(await answers(`tcp://127.0.0.1:${await freePort()}`)).toBe(false);
});

test('third-party programs receive no keys and no other settings', { tags: 'attack' }, async () => {
  const settings = { INTERNAL_API_KEY: 'secret', ENCRYPTION_KEY_FILE: '/x', DATABASE_URL: 'd' };
  const kept = { ...process.env };
  Object.assign(process.env, settings, {
    OPENAI_API_KEY: 'o',
    npm_config_x: 'n',
    PIP_INDEX: 'p',
  });
  try {
    const print = 'console.log(JSON.stringify(process.env))';
    const seen = JSON.parse(await run(process.execPath, ['-e', print], { timeout: 60_000 }));
    const engine = await startProcess({
      name: 'engine',
      command: process.execPath,
      args: ['-e', print],
      runDir,
    });
    await engine.ended;
    const { PATH, HOME } = process.env;
    const names = ['KEY', 'DATABASE', 'npm_', 'PIP_', 'DOCKER_', 'TEST_'];
    for (const env of [seen, JSON.parse(lastLines(engine.logFile, 1))]) {
      expect(env).toMatchObject({ PATH, HOME });
      const reported = Object.keys(env).filter((name) => names.some((part) => name.includes(part)));
      expect(reported).toEqual([]);
    }
  } finally {
    process.env = kept;
  }
});

test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
  "npm packages of the agents' image do not run as root and leave nothing behind",
  { tags: 'attack' },
  async () => {
    const stranger = await Stranger.make(folder);
    try {
      const attack = `
        const fs = require('fs');
        const tried = (work) => { try { work(); return 'done'; } catch ({ code }) { return code; } };
        const { pid } = require('child_process').spawn(
          process.execPath, ['-e', 'setInterval(() => {}, 1000)'],
          { detached: true, stdio: 'ignore' });
        fs.writeFileSync('mine', '');
        console.log(JSON.stringify({ pid, uid: process.getuid(), groups: process.getgroups(),
          reads: tried(() => fs.readdirSync('${folder}/closed')),
          writes: tried(() => fs.writeFileSync('${folder}/closed/x', '')),
          kills: tried(() => process.kill(${process.pid}, 0)) }));
        process.exit();`;
      await mkdir(path.join(folder, 'closed'), { mode: 0o700 });
      const said = JSON.parse(await stranger.runNode(['-e', attack], { timeout: 20_000 }));
      expect(said).toMatchObject({ reads: 'EACCES', writes: 'EACCES', kills: 'EPERM' });
      expect(said.uid).toBeGreaterThan(0);
      expect(said.groups).toEqual([said.uid]);
      expect((await stat(path.join(stranger.folder, 'mine'))).uid).toBe(said.uid);
      expect(existsSync(`/proc/${said.pid}`)).toBe(true);
      await stranger.end();
      const ended = () => Promise.resolve(existsSync(`/proc/${said.pid}/exe`) ? undefined : true);
      expect(await poll(ended, { timeoutMs: 60_000 })).toBe(true);
      await stranger.end();
    } finally {
      await stranger.remove();
    }
    expect(existsSync(stranger.folder)).toBe(false);
  },
);

test(
  'a folder is accepted only if no other user could have prepared it',
  { tags: 'attack' },
  async () => {
    const at = (name: string) => path.join(folder, name);
    await ensureOwnFolder(at('new'));
    await ensureOwnFolder(at('new'));
    expect((await stat(at('new'))).mode & 0o777).toBe(0o711);

    await mkdir(at('open'));
    await chmod(at('open'), 0o1777);
    await symlink(at('new'), at('link'));
    await writeFile(at('file'), '');
    const prepared = ['open', 'link', 'file'];
    if (process.getuid?.() === 0) {
      await mkdir(at('foreign'), { mode: 0o700 });
      await chown(at('foreign'), 1234, 1234);
      prepared.push('foreign');
    }
    for (const name of prepared) {
      await expect(ensureOwnFolder(at(name))).rejects.toThrow(`${at(name)} is not a folder that`);
    }
  },
);

test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
  "root refuses a Docker socket in another user's folder",
  { tags: 'attack' },
  async () => {
    const dataDir = path.join(folder, 'docker');
    const { execRoot, host } = dockerDaemonPlace(dataDir);
    expect((await stat(path.dirname(execRoot))).mode & 0o022).toBe(0);
    await mkdir(execRoot);
    const impostor = createServer((_, response) => response.end());
    try {
      await chown(execRoot, 1234, 1234);
      await new Promise<void>((listening) =>
        impostor.listen(new URL(host).pathname, () => listening()),
      );
      expect(await answers(host)).toBe(true);
      // The record of an engine that ended, left by a killed start.
      await startProcess({ name: 'docker', command: 'sleep', args: ['60'], runDir });
      await expect(startDockerDaemon(dataDir, runDir)).rejects.toThrow(
        `${execRoot} is not a folder`,
      );
    } finally {
      impostor.close();
      await rm(execRoot, { recursive: true, force: true });
    }
  },
);

const hasUserNamespaces =
  process.platform === 'linux' &&
  Number(readFileSync('/proc/sys/user/max_user_namespaces', 'utf8')) > 0 &&
  / 0 +4294967295\s*$/.test(readFileSync('/proc/self/uid_map', 'utf8'));

test.runIf(hasUserNamespaces)(
  'a managed Docker engine remaps users unless its folder or existing data prevents it',
  async () => {
    const dataDir = path.join(folder, 'docker');
    expect(await chooseUserNamespaces(dataDir)).toEqual({ on: true, kept: false });
    // Data of a remapping engine: only its own users may enter the folder.
    const remapped = path.join(dataDir, '100000.100000');
    await mkdir(path.join(remapped, 'volumes'), { recursive: true });
    await chmod(dataDir, 0o710);
    expect(await chooseUserNamespaces(dataDir)).toEqual({ on: true, kept: true });
    expect(await engineFolders(dataDir)).toEqual([dataDir, remapped]);

    await chmod(folder, 0o700);
    await expect(chooseUserNamespaces(dataDir)).rejects.toThrow(
      `${dataDir} holds data that need user namespaces, but ${folder} is closed to others.`,
    );
    await rm(dataDir, { recursive: true });
    expect(await chooseUserNamespaces(dataDir)).toEqual({
      on: false,
      why: `${folder} is closed to others`,
    });

    await chmod(folder, 0o711);
    await mkdir(path.join(dataDir, 'volumes'), { recursive: true });
    expect(await chooseUserNamespaces(dataDir)).toEqual({
      on: false,
      why: `${dataDir} has data of an engine without them`,
    });
  },
);

describe('a managed Docker engine that ends during its start', () => {
  async function startedAgain(kept: boolean, ...outcomes: readonly StartOutcome[]) {
    const remapped: boolean[] = [];
    const { outcome } = await startAgain({ on: true, kept }, (is) => {
      remapped.push(is);
      return Promise.resolve({ outcome: outcomes[remapped.length - 1] ?? 'ready' });
    });
    return { outcome, remapped };
  }

  test('a managed engine is started once more unchanged, as the first failure may be random', async () => {
    expect(await startedAgain(false)).toEqual({ outcome: 'ready', remapped: [true] });
  });

  test('a managed engine stops remapping users only after a second failure', async () => {
    const outcome = 'ready';
    expect(await startedAgain(false, 'ended')).toEqual({ outcome, remapped: [true, false] });
  });

  test.each([
    ['is slow', false, 'slow'],
    ['has agents with users of their own', true, 'ended'],
  ] as const)('a managed engine never stops remapping users if it %s', async (_, kept, outcome) => {
    expect(await startedAgain(kept, outcome)).toEqual({ outcome, remapped: [true] });
  });
});

/** Puts programs on the PATH before the machine's while the work runs. */
async function withPrograms(programs: Readonly<Record<string, string>>, work: () => Promise<void>) {
  const bin = path.join(folder, 'bin');
  await mkdir(bin);
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(path.join(bin, name), script, { mode: 0o755 });
  }
  const PATH = process.env.PATH;
  process.env.PATH = `${bin}:${PATH}`;
  try {
    await work();
  } finally {
    process.env.PATH = PATH;
  }
}

test('two concurrent starts create one container user with unused ids', async () => {
  const ids = 'ada:100000:65536\n';
  await writeFile(path.join(folder, 'passwd'), 'root:x:0:0::/root:/bin/sh\n');
  for (const name of ['subuid', 'subgid']) await writeFile(path.join(folder, name), ids);
  // Like the real ones, the programs fail while the lock is held or the work is done already.
  const locked = (work: string) => `#!/bin/sh
    cd ${folder}
    mkdir lock || exit 1
    sleep 0.1
    ${work}
    code=$?
    rmdir lock
    exit $code
  `;
  const useradd = locked(
    'if grep -q dockremap passwd; then false; else echo dockremap:x:1:1::: >> passwd; fi',
  );
  const usermod = locked(`file=$(echo $1 | sed 's/--add-\\(.*\\)s/\\1/')
    line=dockremap:\${2%-*}:$((\${2#*-} - \${2%-*} + 1))
    grep -q $line $file || echo $line >> $file`);
  await withPrograms({ useradd, usermod }, async () => {
    const start = () => ensureRemappedUser({ etc: folder, pauseMs: 50 });
    await Promise.all([start(), start()]);
  });
  const contents = (name: string) => readFile(path.join(folder, name), 'utf8');
  expect((await contents('passwd')).match(/^dockremap:/gm)).toHaveLength(1);
  expect(await contents('subuid')).toBe(`${ids}dockremap:165536:65536\n`);
  expect(await contents('subgid')).toBe(await contents('subuid'));
});

test('packages are installed one after another, with a retry while another program holds the lock', async () => {
  // Like the real apt-get, it fails at once while the lock is held.
  const aptGet = `#!/bin/sh
    mkdir ${folder}/lock || { touch ${folder}/failed; exit 100; }
    sleep 0.2
    echo "$@" >> ${folder}/done
    rmdir ${folder}/lock
  `;
  await withPrograms({ 'apt-get': aptGet }, async () => {
    await mkdir(path.join(folder, 'lock'));
    const both = Promise.all([
      installPackages(['one'], { pauseMs: 100 }),
      installPackages(['two', 'three'], { pauseMs: 100 }),
    ]);
    await expect.poll(() => readdir(folder)).toContain('failed');
    await rm(path.join(folder, 'lock'), { recursive: true });
    await both;
  });
  const install = 'install -qy --no-install-recommends';
  expect(await readFile(path.join(folder, 'done'), 'utf8')).toBe(
    `update -q\n${install} one\nupdate -q\n${install} two three\n`,
  );
});
