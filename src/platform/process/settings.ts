import { homedir, platform } from 'node:os';
import path from 'node:path';
import { area, variable, type SettingsOf } from '../environment/area.js';
import { privateHostsVariable } from '../environment/private-hosts-variable.js';
import { productionVariable } from '../environment/production.js';
import { choice, text } from '../environment/types.js';

export const processSettings = area(
  'Processes',
  () => ({
    production: productionVariable,
    privateHosts: privateHostsVariable,
    logLevel: variable(
      'LOG_LEVEL',
      choice('debug', 'info', 'warn', 'error', 'silent').prefault('info'),
      'the least that is logged',
    ),
    dataDir: variable(
      'DATA_DIR',
      text.prefault('.data'),
      'the journals of usage and of what should run, and the state of what `npm start` starts',
    ),
    cacheDir: variable(
      'CACHE_DIR',
      text.optional(),
      'files that were fetched or built once, shared by clones',
      { whenUnset: "in the user's cache folder" },
    ),
    cacheHome: variable(
      'XDG_CACHE_HOME',
      text.optional(),
      "the user's cache folder, but on macOS",
      { whenUnset: '`~/.cache`' },
    ),
  }),
  ({ cacheDir, cacheHome, ...values }) => ({
    ...values,
    cacheDir: cacheDir ?? path.join(userCache(cacheHome), 'agent-platform-service'),
  }),
);

export type ProcessSettings = SettingsOf<typeof processSettings>;

function userCache(cacheHome: string | undefined): string {
  if (platform() === 'darwin') return path.join(homedir(), 'Library', 'Caches');
  return cacheHome ?? path.join(homedir(), '.cache');
}
