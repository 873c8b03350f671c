import { chmodSync } from 'node:fs';
import path from 'node:path';
import { loadConfig, type Config } from '../src/config.js';
import { requireRoom } from './disk.js';
import { StartFailure } from './failure.js';
import { projectRoot } from './root.js';

const NEEDED_BYTES = 500_000_000;

/** What only the launcher reads from the environment, beside the checked whole. */
export interface Settings {
  /** The environment as the services will see it, with stand-ins for what the start makes. */
  readonly config: Config;
  /** State of the embedded engines. */
  readonly dataDir: string;
  /** Logs and process records. */
  readonly runDir: string;
  /** Whether a Docker engine may be installed and started. */
  readonly manageDocker: boolean;
}

/** Reads the environment before anything is started. @throws ConfigError with every problem. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const config = loadConfig({
    ...env,
    ...(isSet(env, 'DATABASE_URL') ? {} : { DATABASE_URL: 'postgres://localhost' }),
    ...(isSet(env, 'ENCRYPTION_KEY')
      ? {}
      : { ENCRYPTION_KEY: Buffer.alloc(32).toString('base64') }),
    ...(isSet(env, 'INTERNAL_API_KEY') ? {} : { INTERNAL_API_KEY: 'made by the start' }),
  });
  const manage = env.MANAGE_DOCKER?.trim() || 'auto';
  if (manage !== 'auto' && manage !== 'never') {
    throw new StartFailure('MANAGE_DOCKER must be auto or never.');
  }
  const dataDir = path.resolve(projectRoot, env.DATA_DIR?.trim() || '.data');
  return { config, dataDir, runDir: path.join(dataDir, 'run'), manageDocker: manage === 'auto' };
}

/** Whether a variable has a value, given as text or as the name of a file. */
export function isSet(env: NodeJS.ProcessEnv, name: string): boolean {
  return Boolean(env[name]?.trim() || env[`${name}_FILE`]?.trim());
}

/** Makes the data folder, and finds out that it can hold what the engines write. */
export function makeDataDir(dataDir: string): void {
  requireRoom('DATA_DIR', dataDir, NEEDED_BYTES);
  // Others may pass (PostgreSQL runs as another user when root starts it) but not look around.
  chmodSync(dataDir, 0o711);
}
