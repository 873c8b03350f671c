import { NoRadioError } from '../../src/radio/settings.js';
import { configurableAuthentication } from './authentication.js';
import { sameSecret } from './bearer-token.js';

/** Icecast, which requests the admission of sources. */
export interface IcecastCaller {
  readonly kind: 'icecast';
}

const USER = 'icecast';

/** The secret in Icecast's requests; undefined without a radio. */
export const icecastSecret = configurableAuthentication<string | undefined, IcecastCaller>({
  name: 'icecast',
  schemes: [{ icecast: { type: 'http', scheme: 'basic', description: 'RADIO_AUTH_SECRET' } }],
  errors: [401, 503],
  prepare: (secret) => {
    const expected = secret && `${USER}:${secret}`;
    return ({ request }) => {
      if (expected === undefined) throw new NoRadioError();
      const [, encoded] =
        /^basic ([a-z\d+/=]{1,1000})$/i.exec(request.headers.authorization ?? '') ?? [];
      const presented = Buffer.from(encoded ?? '', 'base64').toString();
      if (!sameSecret(presented, expected)) return undefined;
      return { caller: { kind: 'icecast' }, tenant: 'none', scope: 'icecast' };
    };
  },
});
