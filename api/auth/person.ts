import type { KeyScope } from '../../src/types/key-scopes.js';
import type { Plan } from '../../src/types/plans.js';
import { anonymousIdentity, type AnonymousCaller } from './anonymous.js';
import { apiKey } from './api-key.js';
import { authentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { session, type Person, type SessionCaller } from './session.js';

/** A person's program: may do everything but manage keys, sessions and the account. */
export interface ProgramCaller extends Person {
  readonly kind: 'api-key';
  readonly keyId: string;
  readonly scopes: readonly KeyScope[];
}

/** The plan whose limits apply; administrators get the highest plan. */
export const planOfPerson = ({ plan, user }: Person): Plan | undefined =>
  user.isAdmin ? 'network' : plan;

/** The person as holder of a plan. */
export const planHolder = ({ plan, user: { isAdmin } }: Person) => ({ plan, isAdmin });

/** A person, by browser session or by API key. With an API key, cookies are ignored. */
export const person = authentication<SessionCaller | ProgramCaller>({
  name: 'person',
  schemes: [...session.schemes, ...apiKey.schemes],
  errors: [401, 503],
  errorsOfChanges: [403],
  prepare(configs) {
    const bySession = session.prepare(configs);
    const byKey = apiKey.prepare(configs);
    return async (presented) => {
      if (bearerOf(presented.request) === undefined) return bySession(presented);
      const found = await byKey(presented);
      if (found === undefined) return undefined;
      const { keyId, scopes, userId: id, name, email, isAdmin, plan } = found.caller;
      return {
        ...found,
        caller: { kind: 'api-key', keyId, scopes, user: { id, name, email, isAdmin }, plan },
      };
    };
  },
});

/** A person, or anonymous without credentials; an invalid bearer token is rejected. */
export const optionalPerson = authentication<SessionCaller | ProgramCaller | AnonymousCaller>({
  name: 'optional-person',
  schemes: person.schemes,
  optional: true,
  errors: person.errors,
  errorsOfChanges: person.errorsOfChanges,
  prepare(configs) {
    const byEither = person.prepare(configs);
    return async (presented) => {
      const found = await byEither(presented);
      if (found !== undefined || bearerOf(presented.request) !== undefined) return found;
      return anonymousIdentity(presented);
    };
  },
});
