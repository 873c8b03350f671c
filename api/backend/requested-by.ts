import type { InternalCaller } from '../http/caller.js';

/** Owner of agents that are made with the internal key on nobody's behalf; made by the migrations. */
export const OPERATOR_ID = 'operator';

/** Who the audit log names. */
export function actorOf(caller: InternalCaller): string {
  return caller.user ? `user:${caller.user.id}` : OPERATOR_ID;
}
