import type { Area } from '../platform/environment/area.js';
import { readAreas, type Environment } from '../platform/environment/read.js';
import { SettingsError } from '../platform/environment/settings-error.js';
import { failure, ok, warning, type Check, type Finding } from './check.js';

/** Variables that only one process may have. */
const FOREIGN: Readonly<Record<string, string>> = {
  DATABASE_OWNER_URL: 'only scripts/migrate.js may have it; no API or worker starts with it',
  OPERATOR_PRIVATE_KEY: 'only the payments process may have it; no other process starts with it',
};

/** Checks all settings, a line for each problem. */
export const settingsCheck = (areas: Readonly<Record<string, Area>>): Check => ({
  name: 'settings',
  run: (env) => Promise.resolve([...problemsOf(areas, env), ...foreignIn(env)]),
});

function problemsOf(areas: Readonly<Record<string, Area>>, env: Environment): Finding[] {
  try {
    readAreas(areas, env);
    return [ok('All settings are valid.')];
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return error.problems.map((problem) => failure(`${problem} (docs/settings.md).`));
  }
}

const foreignIn = (env: Environment): Finding[] =>
  Object.entries(FOREIGN)
    .filter(([name]) => Boolean(env[name]?.trim() || env[`${name}_FILE`]?.trim()))
    .map(([name, rule]) => warning(`${name} is set in this environment: ${rule}.`));
