import { UnavailableError } from '../lib/errors.js';
import { address, plainFault } from '../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { textMatching } from '../platform/environment/types.js';

const secret = textMatching(
  /^[\x21-\x7e]{32,200}$/,
  'at least 32 printable characters without blanks (openssl rand -hex 32)',
);

const MADE = '`npm start` generates one for its own Icecast';

export const radioSettings = area(
  'Radio',
  (mode) => ({
    icecastUrl: variable(
      'RADIO_ICECAST_URL',
      address(mode, 'http', 'https').optional(),
      'address at which the platform reaches Icecast',
      { whenUnset: 'no radio; `npm start` runs an Icecast of its own' },
    ),
    adminPassword: variable(
      'RADIO_ADMIN_PASSWORD',
      secret.optional(),
      'password of the user `admin` of Icecast; required with `RADIO_ICECAST_URL`',
      { secret: true, whenUnset: MADE },
    ),
    authSecret: variable(
      'RADIO_AUTH_SECRET',
      secret.optional(),
      'password that Icecast sends to `POST /api/radio/authorize`; required with `RADIO_ICECAST_URL`',
      { secret: true, whenUnset: MADE },
    ),
    publicUrl: variable(
      'RADIO_PUBLIC_URL',
      address(mode, 'http', 'https').optional(),
      'address at which sources and players reach Icecast; in production with a host name of its own',
      { whenUnset: '`RADIO_ICECAST_URL`' },
    ),
  }),
  ({ adminPassword, authSecret, icecastUrl, publicUrl }) => ({
    /** Undefined where there is no radio. */
    icecast:
      icecastUrl === undefined || adminPassword === undefined || authSecret === undefined
        ? undefined
        : { url: icecastUrl, publicUrl: publicUrl ?? icecastUrl, adminPassword, authSecret },
  }),
  ({ adminPassword, authSecret, icecastUrl, publicUrl }, { production }) => {
    if (icecastUrl === undefined) return [];
    const missing = Object.entries({
      RADIO_ADMIN_PASSWORD: adminPassword,
      RADIO_AUTH_SECRET: authSecret,
    }).flatMap(([name, value]) =>
      value === undefined ? [`${name} is missing: RADIO_ICECAST_URL needs it`] : [],
    );
    // Listeners are outside of the operator's own network.
    const needsPublic = publicUrl === undefined && plainFault(icecastUrl, {}) !== undefined;
    return production && needsPublic
      ? [
          ...missing,
          'RADIO_PUBLIC_URL is missing: sources and players do not reach RADIO_ICECAST_URL',
        ]
      : missing;
  },
);

export type RadioSettings = SettingsOf<typeof radioSettings>;

/** An Icecast, with the passwords of both directions. */
export type IcecastSettings = NonNullable<RadioSettings['icecast']>;

/** 503: no Icecast is configured. */
export class NoRadioError extends UnavailableError {
  override readonly name = 'NoRadioError';

  constructor() {
    super('There is no radio here: the operator can set RADIO_ICECAST_URL');
  }
}

/** Returns the configured Icecast. @throws NoRadioError */
export function requireIcecast({ icecast }: RadioSettings): IcecastSettings {
  if (!icecast) throw new NoRadioError();
  return icecast;
}
