import { chmodSync } from 'node:fs';
import path from 'node:path';
import { chainSettings } from '../src/money/chain/settings.js';
import { area, variable } from '../src/platform/environment/area.js';
import { readAreas, type Environment } from '../src/platform/environment/read.js';
import { choice, text } from '../src/platform/environment/types.js';
import { AREAS } from '../src/settings.js';
import { requireRoom } from './disk.js';
import { projectRoot } from './root.js';

const NEEDED_BYTES = 500_000_000;

/** Settings that only the launcher reads. */
export const launcherSettings = area(
  '`npm start`',
  () => ({
    manageDocker: variable(
      'MANAGE_DOCKER',
      choice('auto', 'never').prefault('auto'),
      '`never`: only a running Docker is used; none is installed or started',
    ),
    manageIcecast: variable(
      'MANAGE_ICECAST',
      choice('auto', 'never').prefault('auto'),
      '`never`: no Icecast is installed or started, so that the radio needs `RADIO_ICECAST_URL`',
    ),
    temporalCli: variable('TEMPORAL_CLI_PATH', text.optional(), "Temporal's CLI", {
      whenUnset: 'found or fetched',
    }),
    temporalTestServer: variable(
      'TEMPORAL_TEST_SERVER_PATH',
      text.optional(),
      "Temporal's test server, for `npm test`",
      { whenUnset: 'found or fetched' },
    ),
  }),
  ({ manageDocker, manageIcecast, ...values }) => ({
    ...values,
    manageDocker: manageDocker === 'auto',
    manageIcecast: manageIcecast === 'auto',
  }),
);

/** The product's settings, and the launcher's own. */
export type LauncherSettings = ReturnType<typeof readSettings>;

/**
 * Reads the environment before anything is started, with placeholders for values that the start
 * generates.
 *
 * @throws SettingsError with every problem.
 */
export function readSettings(env: Environment) {
  const settings = readAreas({ ...AREAS, launcher: launcherSettings }, withStandIns(env));
  const dataDir = path.resolve(projectRoot, settings.process.dataDir);
  return {
    ...settings,
    /** State of the embedded servers. */
    dataDir,
    /** Logs and process records. */
    runDir: path.join(dataDir, 'run'),
  };
}

const STAND_INS = {
  AGENT_EGRESS_IMAGE: `sha256:${'0'.repeat(64)}`,
  DATABASE_URL: 'postgres://localhost',
  ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
  INSTALLATION_ID: '0'.repeat(16),
  INTERNAL_API_KEY: 'made by the start',
};

/** Returns an environment with placeholders for values that the start generates. */
export function withStandIns(env: Environment): NodeJS.ProcessEnv {
  const missing = Object.entries(STAND_INS).filter(([name]) => !isSet(env, name));
  return { ...env, ...Object.fromEntries(missing) };
}

/**
 * Splits the key that pays from an environment, for processes that get only its address.
 *
 * @returns the paying part and the rest.
 * @throws SettingsError
 */
export function withoutPayer(env: NodeJS.ProcessEnv): {
  readonly payer: NodeJS.ProcessEnv;
  readonly serving: NodeJS.ProcessEnv;
} {
  const { OPERATOR_PRIVATE_KEY, OPERATOR_PRIVATE_KEY_FILE, ...others } = env;
  const payer = { OPERATOR_PRIVATE_KEY, OPERATOR_PRIVATE_KEY_FILE };
  const { operator } = readAreas({ chain: chainSettings }, env).chain;
  return { payer, serving: operator ? { ...others, OPERATOR_ADDRESS: operator.address } : others };
}

/** Reports whether a variable has a value, given as text or as the name of a file. */
export function isSet(env: Environment, name: string): boolean {
  return Boolean(env[name]?.trim() || env[`${name}_FILE`]?.trim());
}

/** Creates the data folder, and checks that the servers can write to it. */
export function makeDataDir(dataDir: string): void {
  requireRoom('DATA_DIR', dataDir, NEEDED_BYTES);
  // Other users may traverse the folder (PostgreSQL runs as another user if root starts it), but not list
  // it.
  chmodSync(dataDir, 0o711);
}
