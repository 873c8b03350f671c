import type { PayingSession } from '../../src/money/sessions/find-session.js';
import { anonymousIdentity } from './anonymous.js';
import { configurableAuthentication } from './authentication.js';
import { header } from './credential.js';
import { optionalPerson, type ProgramCaller } from './person.js';
import type { SessionCaller } from './session.js';

const sessionId = header('x-session-id');
const walletAddress = header('x-wallet-address');

/** A caller with the id of a payment session. */
export interface PaymentSessionCaller {
  readonly kind: 'payment-session';
  readonly session: PayingSession;
}

export interface NoPayer {
  readonly kind: 'anonymous';
  /** True if the request carried an invalid payment session. */
  readonly hasSessionHeaders: boolean;
}

export interface PaymentSessionCredentials {
  readonly token: string;
  /** In any letter case. */
  readonly address: string;
}

type FindSession = (shown: PaymentSessionCredentials) => Promise<PayingSession | undefined>;

/**
 * The payer: a payment session, or a person's credits. Callers without either are let in; the endpoint
 * answers them. An `Idempotency-Key` belongs to the session or to the person, regardless of their sign-in;
 * anonymous keys are ignored.
 */
export const payer = configurableAuthentication<
  FindSession,
  PaymentSessionCaller | SessionCaller | ProgramCaller | NoPayer
>({
  name: 'payer',
  schemes: [
    { sessionId: sessionId.scheme, walletAddress: walletAddress.scheme },
    ...optionalPerson.schemes,
  ],
  optional: true,
  errors: optionalPerson.errors,
  errorsOfChanges: optionalPerson.errorsOfChanges,
  prepare(find, configs) {
    const byPerson = optionalPerson.prepare(configs);
    return async (presented) => {
      const [token, address] = [sessionId, walletAddress].map(({ of }) => of(presented.request));
      const nobody = (hasSessionHeaders: boolean) => ({
        ...anonymousIdentity(presented),
        caller: { kind: 'anonymous' as const, hasSessionHeaders },
        storesResponse: true,
      });
      if (token !== undefined && address !== undefined) {
        const session = await find({ token, address });
        if (!session) return nobody(true);
        const caller = { kind: 'payment-session' as const, session };
        return { caller, tenant: 'none' as const, scope: `payment-session:${session.id}` };
      }
      const found = await byPerson(presented);
      if (found === undefined) return undefined;
      const { caller } = found;
      return caller.kind === 'anonymous'
        ? nobody(false)
        : { ...found, caller, scope: caller.user.id };
    };
  },
});
