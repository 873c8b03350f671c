import { z } from 'zod';
import { linkIdentity, signInByIdentity } from '../../src/accounts/identities.js';
import { IdentityRefusedError } from '../../src/accounts/proven-identity.js';
import { createSession } from '../../src/accounts/sessions.js';
import type { SignInProvider } from '../../src/accounts/sign-in-provider.js';
import type { ProviderKind } from '../../src/accounts/ways-in.js';
import {
  BadGatewayError,
  ConflictError,
  UnauthorizedError,
  UnavailableError,
} from '../../src/errors.js';
import { networksOf } from '../../src/http/client-networks.js';
import { tokenHash } from '../../src/secrets/token-hash.js';
import { anonymous } from '../auth/anonymous.js';
import { freshSession } from '../auth/fresh-session.js';
import { optionalSession } from '../auth/optional-session.js';
import { ProviderFlows, type ProviderFlow } from '../auth/provider-flows.js';
import {
  providerStrategy,
  type ProviderOutcomes,
  type ProviderRequest,
} from '../auth/provider-strategy.js';
import { serializeSessionCookie } from '../auth/session-cookie.js';
import { SignIn } from '../auth/sign-in.js';
import { area } from '../http/area.js';
import { redirect, reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { signInHeaders, signInPlace } from './sign-in-place.js';

/** Longer than any provider's. */
const MAX_CODE_LENGTH = 4096;

const accounts = area({ tag: 'Accounts', auth: anonymous, limit: LIMITS.signIn });

/** What is of another form is as if it were not there: a browser is always sent on. */
const shortText = z.string().max(MAX_CODE_LENGTH).optional().catch(undefined);

const answerQuery = z.object({
  code: shortText,
  state: shortText,
  error: shortText,
  iss: shortText,
});

const flowHeaders = z.object({ cookie: z.string().optional() });

/** Sign-in at the identity provider and at the code host, and linking to them (spec 4.1). */
export function providerEndpoints(dependencies: WebDependencies) {
  const { providers } = dependencies;
  return [
    ...endpointsOf('google', 'Idp', providers.google, dependencies),
    ...endpointsOf('github', 'Codehost', providers.github, dependencies),
  ];
}

/** @param prefix how the error values begin that people are told. */
function endpointsOf(
  kind: ProviderKind,
  prefix: 'Idp' | 'Codehost',
  provider: SignInProvider | undefined,
  { settings, database, log, refusals, secrets }: WebDependencies,
) {
  const store = { database, secrets, settings: settings.accounts };
  const secure = settings.accounts.sessionCookieSecure;
  const flows = new ProviderFlows(kind, secrets, secure);
  const outcomes: ProviderOutcomes = {
    signIn: (applicant, origin) => signInByIdentity(store, applicant, origin),
    async link(account, applicant, origin) {
      await linkIdentity(store, account, applicant, origin).catch((cause: unknown) => {
        if (cause instanceof ConflictError)
          throw new IdentityRefusedError('LinkRefused', { cause });
        if (cause instanceof UnauthorizedError) {
          throw new IdentityRefusedError('AuthFailed', { cause });
        }
        throw cause;
      });
      return `/dashboard?linked=${kind}`;
    },
  };
  const signIn = new SignIn(provider ? [providerStrategy(provider, outcomes)] : []);

  const toLogin = (failure: string, cookies: readonly string[] = []) =>
    redirect(302, `/login?error=${prefix}${failure}`, { 'Set-Cookie': cookies });

  /** Where the browser is sent, or undefined when the provider cannot be asked. */
  async function begin(
    flow: ProviderFlow,
    request: Pick<ProviderRequest, 'from' | 'origin'>,
  ): Promise<string | undefined> {
    try {
      const asked: ProviderRequest = { ...request, step: 'begin', flow, query: {} };
      const outcome = await signIn.attempt(kind, asked);
      return outcome.kind === 'redirect' ? outcome.location : undefined;
    } catch (error) {
      log.error({ err: error, kind }, 'a sign-in at a provider cannot begin');
      return undefined;
    }
  }

  return [
    accounts({
      method: 'GET',
      path: `/api/auth/${kind}`,
      summary: `Sign in at the ${NAMES[kind]}: sends the browser there`,
      headers: flowHeaders,
      responses: { 302: 'redirect' },
      async handler({ clientAddress: address, headers, requestId }) {
        if (provider === undefined) return toLogin('NotConfigured');
        const flow = flows.begin();
        const origin = { address, requestId };
        const location = await begin(flow, { from: networksOf(address), origin });
        if (location === undefined) return toLogin('AuthError');
        return redirect(302, location, { 'Set-Cookie': flows.keep(flow, headers.cookie) });
      },
    }),
    accounts({
      method: 'GET',
      path: `/api/auth/${kind}/callback`,
      summary: `Back from the ${NAMES[kind]}: signs in or links, and sends the browser on`,
      auth: optionalSession,
      headers: signInHeaders,
      query: answerQuery,
      responses: { 302: 'redirect' },
      async handler(request) {
        const { caller, clientAddress: address, headers, query, requestId } = request;
        if (provider === undefined) return toLogin('NotConfigured');
        const { state = '' } = query;
        const flow = flows.find(state, headers.cookie);
        const ended = flow === undefined ? [] : [flows.end(state)];
        const failed = (failure: string) => {
          refusals.note({ action: 'sign-in.failed', subject: kind, address });
          return toLogin(failure, ended);
        };
        try {
          const asked: ProviderRequest = {
            step: 'answer',
            flow,
            query,
            from: networksOf(address),
            origin: { address, requestId },
            sessionId: caller.kind === 'session' ? caller.sessionId : undefined,
          };
          const outcome = await signIn.attempt(kind, asked);
          if (outcome.kind === 'redirect') {
            return redirect(302, outcome.location, { 'Set-Cookie': ended });
          }
          if (outcome.kind === 'refused') {
            // The one way in which the strategy fails.
            const { cause, failure } = outcome.why as IdentityRefusedError;
            if (cause !== undefined)
              log.warn({ err: cause, kind, failure }, 'a sign-in was refused');
            return failed(failure);
          }
          // One flow opens one session, whoever comes with its answer how often.
          const place = { ...signInPlace(request), sessionId: sessionIdOf(state) };
          const made = await createSession(database, outcome.proof, place);
          if (made === undefined) return failed('AuthFailed');
          const cookie = serializeSessionCookie(made.token, secure);
          return redirect(302, '/dashboard', { 'Set-Cookie': [cookie, ...ended] });
        } catch (error) {
          log.error({ err: error, kind }, 'a sign-in at a provider failed');
          return failed('AuthError');
        }
      },
    }),
    accounts({
      method: 'POST',
      path: `/api/settings/identities/${kind}`,
      summary: `Link your account at the ${NAMES[kind]}: where to send the browser`,
      auth: freshSession,
      headers: flowHeaders,
      responses: { 200: z.strictObject({ url: z.string() }) },
      errors: [502, 503],
      async handler({ caller, clientAddress: address, headers, requestId }) {
        if (provider === undefined) throw new UnavailableError(`No ${NAMES[kind]} is configured`);
        const flow = flows.begin({ userId: caller.user.id, sessionId: caller.sessionId });
        const origin = { address, requestId };
        const url = await begin(flow, { from: networksOf(address), origin });
        if (url === undefined) throw new BadGatewayError(`The ${NAMES[kind]} does not answer`);
        return reply(200, { url }, { 'Set-Cookie': flows.keep(flow, headers.cookie) });
      },
    }),
  ];
}

const NAMES: Readonly<Record<ProviderKind, string>> = {
  google: 'identity provider',
  github: 'code host',
};

const sessionIdOf = (state: string): string => tokenHash(`session of ${state}`).slice(0, 32);
