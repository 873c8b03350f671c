import { homedir } from 'node:os';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { TemporalSettings } from '../src/platform/temporal/settings.js';

/** How Temporal is reached, and where in it: by the settings, else by the profile of its own CLI. */
export function temporalConnection({ connection }: Pick<TemporalSettings, 'connection'>) {
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig({
    overrideEnvVars: { HOME: homedir(), ...connection },
  });
  return { connectionOptions, namespace };
}
