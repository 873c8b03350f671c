import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { minimalEnvironment } from '../processes/minimal-environment.js';
import { lastWords, run } from '../processes/run.js';
import { identify } from '../processes/process-identity.js';
import { endProcess, lastLines, startProcess, type ServerProcess } from '../processes/process.js';
import { findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.js';
import { postgresUser, type PostgresUser } from './postgres-user.js';
const READY_TIMEOUT_MS = 60_000; // Crash recovery reads the log of the last minutes.

export interface PostgresOptions {
  /** Folder of the cluster; created if missing, and kept. */
  readonly dataDir: string;
  /** Folder of the log and the process record. */
  readonly runDir: string;
  readonly port: number;
  /** Password of the superuser `postgres`, set by the first start. */
  readonly password: string;
  /** Further server settings. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Paths of PostgreSQL's programs; by default those of the npm package. */
  readonly binaries?: PostgresBinaries;
}

/** An embedded PostgreSQL on loopback. */
export interface Postgres {
  readonly port: number;
  /** URL of the superuser's own database. */
  readonly superuserUrl: string;
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/** Starts PostgreSQL on its data folder, and creates a missing folder first. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const binaries = options.binaries ?? (await findPostgresBinaries());
  const user = await postgresUser([binaries.postgres, options.dataDir]);
  if (!existsSync(options.dataDir)) await createCluster(binaries.initdb, options, user);
  await clearStaleLock(options.dataDir);

  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port: String(options.port),
    shared_buffers: '64MB',
    ...options.settings,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = await startProcess({
    name: 'postgres',
    ...user.command(binaries.postgres, ['-D', options.dataDir, ...flags]),
    env: { ...minimalEnvironment(), LC_ALL: 'C' },
    cwd: '/',
    runDir: options.runDir,
    stopSignal: 'SIGINT', // A fast shutdown: SIGTERM would wait for every client.
  });
  const stop = () => server.stop(20_000);

  const superuserUrl = `postgres://postgres:${encodeURIComponent(options.password)}@127.0.0.1:${options.port}/postgres`;
  try {
    const ready = await poll(async () => (server.hasEnded() ? 'ended' : isReady(superuserUrl)), {
      timeoutMs: READY_TIMEOUT_MS,
    });
    if (ready !== 'ready') {
      throw new StartFailure(
        `PostgreSQL does not start; the end of ${server.logFile}:\n${lastLines(server.logFile)}`,
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { port: options.port, superuserUrl, process: server, stop };
}

async function createCluster(
  initdb: string,
  options: PostgresOptions,
  user: PostgresUser,
): Promise<void> {
  // Created under a temporary name and then renamed, so that an interrupted start leaves no incomplete
  // cluster.
  const fresh = `${options.dataDir}.new`;
  const passwordFile = `${options.dataDir}.password`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  user.own(fresh);
  writeFileSync(passwordFile, options.password, { mode: 0o600 });
  user.own(passwordFile);
  const { command, args, ...ids } = user.command(initdb, [
    `--pgdata=${fresh}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ]);
  try {
    await run(command, args, {
      ...ids,
      cwd: '/',
      timeout: 120_000,
      env: { ...minimalEnvironment(), LC_ALL: 'C' },
    });
  } catch (cause) {
    rmSync(fresh, { recursive: true, force: true });
    throw new StartFailure(`PostgreSQL could not create its data folder: ${lastWords(cause)}`, {
      cause,
    });
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(fresh, options.dataDir);
}

/** Removes a lock left by a kill: its pid belongs to no process, or by now to another program. */
async function clearStaleLock(dataDir: string): Promise<void> {
  const lock = path.join(dataDir, 'postmaster.pid');
  if (!existsSync(lock)) return;
  const pid = Number((await readFile(lock, 'utf8')).split('\n')[0]);
  const holder = Number.isInteger(pid) && pid > 1 ? await identify(pid) : undefined;
  if (holder && (await programOf(pid)) === 'postgres') await endProcess(holder, 'SIGINT', 20_000);
  await rm(lock, { force: true });
}

async function programOf(pid: number): Promise<string> {
  const program = await run('ps', ['-o', 'comm=', '-p', String(pid)], { timeout: 5_000 });
  return path.basename(program.trim());
}

async function isReady(url: string): Promise<'ready' | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined); // The query below rejects as well.
  try {
    await client.connect();
    await client.query('select 1');
    return 'ready';
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === '28P01') {
      throw new StartFailure(
        'The password stored in DATA_DIR does not match its PostgreSQL: restore secrets.json, or delete DATA_DIR to start over.',
      );
    }
    return undefined; // Not ready: connection refused, or still starting.
  } finally {
    await client.end().catch(() => undefined);
  }
}
