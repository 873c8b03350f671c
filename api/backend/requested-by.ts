import { OPERATOR_USER_ID } from '../../src/accounts/register.js';
import type { InternalCaller } from '../auth/internal-key.js';

/** Who the audit log names: the user the caller speaks for, or the operator. */
export function actorOf(caller: InternalCaller): string {
  return ownerOf(caller);
}

/** Whose a new agent is: the operator's when it is made on nobody's behalf. */
export function ownerOf(caller: InternalCaller): string {
  return caller.user?.id ?? OPERATOR_USER_ID;
}
