import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { inNetworks, plainAddress } from '../http/client-address.js';
import { anonymousIdentity, type AnonymousCaller } from './anonymous.js';
import type { ApiKeyCaller } from './api-key.js';
import { configurableAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { bearer } from './bearer.js';
import { readIdentityHeaders, type ClaimedIdentity } from './identity-headers.js';
import type { InternalCaller } from './internal-key.js';

/** A caller without a key whose identity headers are trusted. */
export interface ClaimedCaller extends ClaimedIdentity {
  readonly kind: 'claimed';
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** The internal key, a user's API key, or else trusted identity headers, which grant access to no rows. */
export const optionalBearer = configurableAuthentication<
  {
    /** Reports whether the identity headers of a keyless caller on this machine are trusted. */
    readonly trustsLoopback: () => Promise<boolean>;
  },
  InternalCaller | ApiKeyCaller | ClaimedCaller | AnonymousCaller
>({
  name: 'optional-bearer',
  schemes: bearer.schemes,
  optional: true,
  errors: bearer.errors,
  prepare({ trustsLoopback }, configs) {
    const byKey = bearer.prepare(configs);
    return async (presented) => {
      const { request } = presented;
      if (bearerOf(request) !== undefined) return byKey(presented);
      if (!isDirectLoopback(request) || !(await trustsLoopback())) {
        return anonymousIdentity(presented);
      }
      const claimed = readIdentityHeaders(request);
      return {
        caller: { kind: 'claimed', ...claimed },
        tenant: 'none',
        scope: `claimed:${claimed.user?.id ?? ''}`,
      };
    };
  },
});

/** Reports whether a request comes from this machine and not through a proxy on it. */
function isDirectLoopback({ headers, socket }: IncomingMessage): boolean {
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false;
  return inNetworks(LOOPBACK, plainAddress(socket.remoteAddress ?? ''));
}
