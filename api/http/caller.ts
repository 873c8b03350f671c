import type { CallingAgent } from '../../src/agents/agent-caller-lookup.js';
import type { ApiKeyHolder } from '../../src/accounts/api-key-lookup.js';

/** A person as the endpoints see one; never with anything secret. */
export interface CallerUser {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
}

/** Nobody in particular, or a request whose endpoint does not ask who it is. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
}

/** A signed-in person. */
export interface SessionCaller {
  readonly kind: 'session';
  readonly user: CallerUser;
  /** What `x-csrf-token` must say on a state-changing request from another site. */
  readonly csrfToken: string;
}

/** A holder of the internal key, who may speak for a user. */
export interface InternalCaller {
  readonly kind: 'internal';
  /** From `x-user-id`, `x-user-email` and `x-user-role`; absent without `x-user-id`. */
  readonly user:
    { readonly id: string; readonly email?: string; readonly role?: string } | undefined;
  /** From `x-user-email`, also where nobody says whose it is. */
  readonly email: string | undefined;
  /** From `x-user-plan`, as it came. */
  readonly plan: string | undefined;
  /** From `x-billing-subscription-id`. */
  readonly subscriptionId: string | undefined;
}

/** Who a caller without a key says to be, where such headers are believed. */
export interface ClaimedCaller extends Omit<InternalCaller, 'kind'> {
  readonly kind: 'claimed';
}

/** An agent, by the token that its container holds. */
export interface AgentCaller extends CallingAgent {
  readonly kind: 'agent';
}

/** A user's program, by one of the user's API keys. What its headers say of a user never counts. */
export interface ApiKeyCaller extends Omit<ApiKeyHolder, 'lastUsed'> {
  readonly kind: 'api-key';
}

export type Caller =
  AnonymousCaller | SessionCaller | InternalCaller | ClaimedCaller | AgentCaller | ApiKeyCaller;

/** Which caller a handler can meet under each authentication class. */
export interface CallerByAuth {
  none: AnonymousCaller;
  session: SessionCaller;
  'optional-session': SessionCaller | AnonymousCaller;
  internal: InternalCaller;
  agent: AgentCaller;
  'api-key': ApiKeyCaller;
  /** The internal key or a user's API key. */
  bearer: InternalCaller | ApiKeyCaller;
  /** Those too; without a key whoever the headers say, or nobody. */
  'optional-bearer': InternalCaller | ApiKeyCaller | ClaimedCaller | AnonymousCaller;
}

export type Auth = keyof CallerByAuth;

export const ANONYMOUS: AnonymousCaller = { kind: 'anonymous' };
