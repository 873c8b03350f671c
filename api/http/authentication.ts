import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import type { CallingAgent } from '../../src/agents/agent-caller-lookup.js';
import {
  BadRequestError,
  ForbiddenError,
  ServiceError,
  UnauthorizedError,
} from '../../src/errors.js';
import { bearerOf, keyMatcher } from './bearer.js';
import { inNetworks, plainAddress } from './client-address.js';
import { ANONYMOUS, type AgentCaller, type Auth, type Caller } from './caller.js';
import type {
  AnonymousCaller,
  ApiKeyCaller,
  CallerUser,
  ClaimedCaller,
  InternalCaller,
  SessionCaller,
} from './caller.js';
import { csrfGuard } from './csrf.js';
import { readSessionCookie } from './session-cookie.js';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** No column takes a longer one. */
const MAX_USER_ID = 255;

/** How a listener learns who calls. What is not given cannot be used by its endpoints. */
export interface Authenticators {
  /** Finds an unexpired session by its token. */
  readonly session?: (
    token: string,
  ) => Promise<{ readonly user: CallerUser; readonly csrfToken: string } | undefined>;
  readonly internalApiKey?: string | undefined;
  /** Finds a living agent by the token that its container presents. */
  readonly agent?: (token: string) => Promise<CallingAgent | undefined>;
  /** Whether a caller without a key, on this machine, is who its headers say. */
  readonly believesLoopback?: boolean;
  /** Finds the owner of a user's API key, with the plan that counts now. */
  readonly apiKey?: (key: string) => Promise<Omit<ApiKeyCaller, 'kind'> | undefined>;
}

export type CallerReader = (auth: Auth, request: IncomingMessage) => Caller | Promise<Caller>;

/** Tells who calls, or throws what the contract answers to someone who may not. */
export function authentication(
  authenticators: Authenticators,
  publicUrl: string | undefined,
): CallerReader {
  const internal = internalKeyCheck(authenticators.internalApiKey);
  const checkCsrf = csrfGuard(publicUrl);

  async function signedIn(request: IncomingMessage): Promise<SessionCaller | undefined> {
    const token = readSessionCookie(request.headers.cookie);
    if (token === undefined || authenticators.session === undefined) return undefined;
    const session = await authenticators.session(token);
    if (session === undefined) return undefined;
    checkCsrf(request, session.csrfToken);
    return { kind: 'session', user: session.user, csrfToken: session.csrfToken };
  }

  async function agent(request: IncomingMessage): Promise<AgentCaller> {
    const token = bearerOf(request);
    const found = token === undefined ? undefined : await authenticators.agent?.(token);
    if (found === undefined) throw new UnauthorizedError();
    return { kind: 'agent', ...found };
  }

  async function apiKey(request: IncomingMessage): Promise<ApiKeyCaller> {
    const key = bearerOf(request);
    const found = key === undefined ? undefined : await authenticators.apiKey?.(key);
    if (found === undefined) throw new UnauthorizedError();
    const { keyId, userId, email, isAdmin, plan, subscription } = found;
    return { kind: 'api-key', keyId, userId, email, isAdmin, plan, subscription };
  }

  function bearer(request: IncomingMessage): InternalCaller | Promise<ApiKeyCaller> {
    return internal.matches(request) ? internal.check(request) : apiKey(request);
  }

  function claimed(request: IncomingMessage): ClaimedCaller | AnonymousCaller {
    const believed = authenticators.believesLoopback === true && isDirectLoopback(request);
    return believed ? { kind: 'claimed', ...identityOf(request) } : ANONYMOUS;
  }

  return (auth, request) => {
    switch (auth) {
      case 'none':
        return ANONYMOUS;
      case 'optional-session':
        return signedIn(request).then((session) => session ?? ANONYMOUS);
      case 'session':
        return signedIn(request).then((session) => {
          if (session === undefined) throw new UnauthorizedError();
          return session;
        });
      case 'internal':
        return internal.check(request);
      case 'agent':
        return agent(request);
      case 'api-key':
        return apiKey(request);
      case 'bearer':
        return bearer(request);
      case 'optional-bearer':
        return bearerOf(request) === undefined ? claimed(request) : bearer(request);
    }
  };
}

function internalKeyCheck(key: string | undefined) {
  const matches = keyMatcher(key);
  return {
    matches: (request: IncomingMessage): boolean => matches(bearerOf(request) ?? ''),
    check(request: IncomingMessage): InternalCaller {
      if (key === undefined) throw new ServiceError(500, 'Server misconfigured');
      const presented = bearerOf(request);
      if (presented === undefined) throw new UnauthorizedError();
      if (!matches(presented)) throw new ForbiddenError();
      return { kind: 'internal', ...identityOf(request) };
    },
  };
}

function identityOf(request: IncomingMessage): Omit<InternalCaller, 'kind'> {
  const id = headerOf(request, 'x-user-id');
  if (id !== undefined && id.length > MAX_USER_ID) {
    throw new BadRequestError(`x-user-id must be at most ${MAX_USER_ID} characters`);
  }
  const email = headerOf(request, 'x-user-email');
  const role = headerOf(request, 'x-user-role');
  return {
    user: id === undefined ? undefined : { id, ...(email && { email }), ...(role && { role }) },
    email,
    plan: headerOf(request, 'x-user-plan'),
    subscriptionId: headerOf(request, 'x-billing-subscription-id'),
  };
}

/** From this machine, and not by way of a proxy on it. */
function isDirectLoopback({ headers, socket }: IncomingMessage): boolean {
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false;
  return inNetworks(LOOPBACK, plainAddress(socket.remoteAddress ?? ''));
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
