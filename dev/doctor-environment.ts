import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { SettingsError } from '../src/platform/environment/settings-error.js';
import { dockerDaemonPlace } from './docker/docker-daemon.js';
import { answers, findDocker } from './docker/find-docker.js';
import { keptPorts } from './kept-ports.js';
import { startOn } from './lock.js';
import { runningEnvironment } from './running-environment.js';
import { isSet, withoutPayer, withStandIns } from './settings.js';

/** Environment and options of the program that examines a platform. */
export interface DoctorRun {
  readonly env: NodeJS.ProcessEnv;
  readonly options: readonly string[];
}

/** Servers that `npm start` runs unless a variable names another, with the variable. */
const OWN_SERVERS = {
  database: 'DATABASE_URL',
  temporal: 'TEMPORAL_ADDRESS',
  chain: 'CHAIN_RPC_URL',
} as const;

/**
 * Returns the run that examines the platform of `npm start` in a data folder, the machine before a start, or
 * in production the platform of the environment itself.
 */
export async function doctorRun(dataDir: string, env: NodeJS.ProcessEnv): Promise<DoctorRun> {
  if (env.NODE_ENV === 'production') return { env, options: [] };
  const start = await startOn(dataDir);
  if (start !== undefined) {
    const given = withoutOwner((await environmentOf(start)) ?? env);
    const running = runningEnvironment(dataDir, given);
    if (!isSet(given, OWN_SERVERS.temporal)) {
      running.TEMPORAL_ADDRESS = `127.0.0.1:${keptPorts(dataDir).temporal}`;
    }
    return { env: await withDocker(running, dataDir), options: [] };
  }
  const own = Object.entries(OWN_SERVERS).filter(([, variable]) => !isSet(env, variable));
  return {
    env: await withDocker(withStandIns(withoutKey(withoutOwner(env))), dataDir),
    options: ['--stopped', dataDir, ...own.flatMap(([server]) => ['--skip', server])],
  };
}

/** Returns the variables that a process was started with; undefined where the system does not show them. */
async function environmentOf(pid: number): Promise<NodeJS.ProcessEnv | undefined> {
  try {
    const entries = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0');
    return Object.fromEntries(
      entries.flatMap((entry) => {
        const [, name, value] = /^([^=]+)=([\s\S]*)$/.exec(entry) ?? [];
        return name === undefined || value === undefined ? [] : [[name, value]];
      }),
    );
  } catch {
    return undefined; // no Linux, or a process of another user
  }
}

function withoutOwner(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { DATABASE_OWNER_URL, DATABASE_OWNER_URL_FILE, ...others } = env;
  return others;
}

/** Removes the key that pays, unless the settings of the chain are wrong, which the examination reports. */
function withoutKey(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    return withoutPayer(env).serving;
  } catch (error) {
    if (error instanceof SettingsError) return env;
    throw error;
  }
}

/** Adds the address of an engine that `npm start` would find or runs itself. */
async function withDocker(env: NodeJS.ProcessEnv, dataDir: string): Promise<NodeJS.ProcessEnv> {
  if (isSet(env, 'DOCKER_HOST')) return env;
  const { host } = dockerDaemonPlace(path.join(dataDir, 'docker'));
  const found = (await answers(host)) ? host : await findDocker();
  return found === undefined ? env : { ...env, DOCKER_HOST: found };
}
