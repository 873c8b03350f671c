import { authentication, type Identity, type AuthenticationRequest } from './authentication.js';

/** Nobody in particular, or a request whose endpoint does not ask who it is. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
}

const ANONYMOUS: AnonymousCaller = { kind: 'anonymous' };

export function anonymousIdentity({
  clientAddress,
}: AuthenticationRequest): Identity<AnonymousCaller> {
  return { caller: ANONYMOUS, tenant: 'none', scope: `anonymous:${clientAddress}` };
}

/** Nobody has to say who they are. */
export const anonymous = authentication<AnonymousCaller>({
  name: 'none',
  schemes: [],
  errors: [],
  prepare: () => anonymousIdentity,
});
