import { homedir } from 'node:os';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { TemporalSettings } from '../src/platform/temporal/settings.js';

/**
 * Returns Temporal's connection options and namespace, from the settings or else from the profile of
 * Temporal's CLI.
 */
export function temporalConnection({ connection }: Pick<TemporalSettings, 'connection'>) {
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig({
    overrideEnvVars: { HOME: homedir(), ...connection },
  });
  return { connectionOptions, namespace };
}
