import type { Identity } from '../../auth/authentication.js';
import type { BodyFormat } from '../body-format.js';
import type { BodyMemory } from '../body-memory.js';
import { readBody } from '../read-body.js';
import type { Bounds } from '../server.js';
import type { Middleware } from './context.js';

/** Reads the bytes of the body. @param format undefined when the endpoint accepts no body. */
export function receiveBody(
  format: BodyFormat | undefined,
  memory: BodyMemory,
  bounds: Pick<Bounds, 'paceBytes' | 'paceMs'>,
): Middleware {
  const { paceBytes, paceMs } = bounds;
  return async (ctx, next) => {
    // `identity` is undefined where the body itself proves who calls.
    const { clientAddress, identity } = ctx.state;
    const isAnonymous = identity === undefined || identity.caller.kind === 'anonymous';
    const name = identity ? ownerOf(identity) : clientAddress;
    const makeRoom = memory.roomFor({ name, isAnonymous }, ctx.res);
    ctx.state.bytes = await readBody(ctx.req, format, { paceBytes, paceMs, makeRoom });
    await next();
  };
}

/**
 * Returns the owner of a body's memory: bodies sent by a user's keys, sessions and agents count for the user.
 */
const ownerOf = ({ scope, tenant }: Identity): string =>
  typeof tenant === 'string' ? scope : `user:${tenant.userId}`;
