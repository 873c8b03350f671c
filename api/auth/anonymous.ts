import { authentication, type Identity, type Presented } from './authentication.js';

/** Nobody in particular, or a request whose endpoint does not ask who it is. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
}

const ANONYMOUS: AnonymousCaller = { kind: 'anonymous' };

export function anonymousIdentity({ clientAddress }: Presented): Identity<AnonymousCaller> {
  return { caller: ANONYMOUS, sees: 'nothing', scope: `anonymous:${clientAddress}` };
}

/** Nobody has to say who they are. */
export const anonymous = authentication<AnonymousCaller>({
  name: 'none',
  schemes: [],
  errors: [],
  prepare: () => anonymousIdentity,
});
