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
      'lowest level that is logged',
    ),
    dataDir: variable(
      'DATA_DIR',
      text.prefault('.data'),
      'folder of the journals of AI usage and of local repairs, and of the state of `npm start`',
    ),
    cacheDir: variable(
      'CACHE_DIR',
      text.optional(),
      'folder of downloaded and built files, shared by several clones of the repository',
      { whenUnset: "in the user's cache folder" },
    ),
    cacheHome: variable(
      'XDG_CACHE_HOME',
      text.optional(),
      'cache folder of the user, except on macOS',
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
