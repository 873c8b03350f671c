import { randomBytes } from 'node:crypto';
import { readAreas } from '../../src/platform/environment/read.js';
import { radioSettings, requireIcecast, type IcecastSettings } from '../../src/radio/settings.js';
import { isSet } from '../settings.js';

const SECRETS = ['RADIO_ADMIN_PASSWORD', 'RADIO_AUTH_SECRET'] as const;

/**
 * Returns the variables of an Icecast on this port, with new secrets for those not set: Icecast and its users
 * are started together, so that no secret is stored.
 *
 * @throws SettingsError
 */
export function withRadio(
  given: NodeJS.ProcessEnv,
  port: number,
): { readonly env: NodeJS.ProcessEnv; readonly icecast: IcecastSettings } {
  const env: NodeJS.ProcessEnv = { RADIO_ICECAST_URL: `http://127.0.0.1:${port}` };
  for (const name of SECRETS) {
    if (!isSet(given, name)) env[name] = randomBytes(32).toString('hex');
  }
  const { radio } = readAreas({ radio: radioSettings }, { ...given, ...env });
  return { env, icecast: requireIcecast(radio) };
}
