import type { Plan } from '../../src/types/plans.js';
import { anonymousIdentity, type AnonymousCaller } from './anonymous.js';
import { apiKey } from './api-key.js';
import { authentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { session, type Person, type SessionCaller } from './session.js';

/** A person's program, which does what they do but for their keys, sessions and account. */
export interface ProgramCaller extends Person {
  readonly kind: 'api-key';
  readonly keyId: string;
}

/** Whose limits count for somebody: administrators have the highest plan's. */
export const planOfPerson = ({ plan, user }: Person): Plan | undefined =>
  user.isAdmin ? 'network' : plan;

/** A person, by the session of their browser, or by an API key, beside which no cookie is looked at. */
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
      const { keyId, userId: id, name, email, isAdmin, plan } = found.caller;
      return {
        ...found,
        caller: { kind: 'api-key', keyId, user: { id, name, email, isAdmin }, plan },
      };
    };
  },
});

/** The same where nobody has to say who they are; a bearer that is no key is refused. */
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
