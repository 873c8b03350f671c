import { authentication, type Identity, type AuthenticationRequest } from './authentication.js';

/** An unidentified caller, or any caller of an endpoint without authentication. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
}

const ANONYMOUS: AnonymousCaller = { kind: 'anonymous' };

export function anonymousIdentity({
  clientAddress,
}: AuthenticationRequest): Identity<AnonymousCaller> {
  return { caller: ANONYMOUS, tenant: 'none', scope: `anonymous:${clientAddress}` };
}

export const anonymous = authentication<AnonymousCaller>({
  name: 'none',
  schemes: [],
  errors: [],
  prepare: () => anonymousIdentity,
});
