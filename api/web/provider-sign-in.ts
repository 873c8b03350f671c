import * as z from 'zod';
import { linkIdentity, signInByIdentity } from '../../src/accounts/accounts/identities.js';
import { IdentityRefusedError } from '../../src/accounts/accounts/proven-identity.js';
import { createSession } from '../../src/accounts/accounts/sessions.js';
import type { SignInProvider } from '../../src/accounts/accounts/sign-in-provider.js';
import type { ProviderKind } from '../../src/types/sign-in-methods.js';
import { ConflictError, UnauthorizedError } from '../../src/lib/errors.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import { tokenHash } from '../../src/platform/secrets/token-hash.js';
import type { AnonymousCaller } from '../auth/anonymous.js';
import { ProviderFlows } from '../auth/provider-flows.js';
import {
  providerStrategy,
  type ProviderOutcomes,
  type ProviderRequest,
} from '../auth/provider-strategy.js';
import type { SessionCaller } from '../auth/session.js';
import { serializeSessionCookie } from '../auth/session-cookie.js';
import { SignIn } from '../auth/sign-in.js';
import { redirect, type RedirectReply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { signInPlace, type signInHeaders } from './sign-in-place.js';

/** Upper bound; no provider sends a longer code. */
const MAX_CODE_LENGTH = 4096;

/** An invalid value counts as absent: the browser must always be redirected. */
const shortText = z
  .string()
  .max(MAX_CODE_LENGTH)
  .regex(/^[^\0]*$/)
  .optional()
  .catch(undefined);

export const answerQuery = z.object({
  code: shortText.describe('Authorization code of the provider'),
  state: shortText.describe('State of the sign-in that this browser began'),
  error: shortText.describe('Reason why the provider refused'),
  iss: shortText.describe('Issuer of the answer'),
});

type Dependencies = Pick<WebDependencies, 'settings' | 'database' | 'log' | 'refusals' | 'secrets'>;

interface SignInStart {
  readonly origin: RequestOrigin;
  readonly headers: { readonly cookie?: string | undefined };
}

interface Answering extends SignInStart {
  readonly caller: SessionCaller | AnonymousCaller;
  readonly headers: z.output<typeof signInHeaders>;
  readonly query: z.output<typeof answerQuery>;
}

/** Sign-in at one provider, and linking to it: redirects the browser there, and handles its return. */
export class ProviderSignIn {
  readonly #kind: ProviderKind;
  readonly #prefix: string;
  readonly #dependencies: Dependencies;
  readonly #flows: ProviderFlows;
  readonly #signIn: SignIn;

  constructor(
    kind: ProviderKind,
    prefix: string,
    provider: SignInProvider,
    dependencies: Dependencies,
  ) {
    const { secrets, settings } = dependencies;
    this.#kind = kind;
    this.#prefix = prefix;
    this.#dependencies = dependencies;
    this.#flows = new ProviderFlows(kind, secrets, settings.accounts.sessionCookieSecure);
    this.#signIn = new SignIn([providerStrategy(provider, outcomesOf(kind, dependencies))]);
  }

  /** Begins a flow that signs in, or links to `account`; undefined if the provider is unavailable. */
  async begin(request: SignInStart, account?: Parameters<ProviderFlows['begin']>[0]) {
    const flow = this.#flows.begin(account);
    const requested: ProviderRequest = { step: 'begin', flow, query: {}, origin: request.origin };
    try {
      const outcome = await this.#signIn.attempt(this.#kind, requested);
      if (outcome.kind !== 'redirect') return undefined;
      return {
        location: outcome.location,
        cookies: this.#flows.store(flow, request.headers.cookie),
      };
    } catch (error) {
      const { log } = this.#dependencies;
      log.error({ err: error, kind: this.#kind }, 'beginning a sign-in at a provider failed');
      return undefined;
    }
  }

  /** Completes a flow: signs in or links. Always redirects the browser. */
  async end(request: Answering): Promise<RedirectReply<302>> {
    const { caller, headers, origin, query } = request;
    const { database, log, refusals, settings } = this.#dependencies;
    const kind = this.#kind;
    const { state = '' } = query;
    const flow = this.#flows.find(state, headers.cookie);
    const ended = flow === undefined ? [] : [this.#flows.end(state)];
    const failed = (failure: string) => {
      refusals.note({ action: 'sign-in.failed', subject: kind, address: origin.address });
      return toLogin(this.#prefix, failure, ended);
    };
    try {
      const requested: ProviderRequest = {
        step: 'answer',
        flow,
        query,
        origin,
        sessionId: caller.kind === 'session' ? caller.sessionId : undefined,
      };
      const outcome = await this.#signIn.attempt(kind, requested);
      if (outcome.kind === 'redirect') {
        return redirect(302, outcome.location, { 'Set-Cookie': ended });
      }
      if (outcome.kind === 'refused') {
        // Safe cast: the strategy only fails with this error.
        const { cause, failure } = outcome.why as IdentityRefusedError;
        if (cause !== undefined) log.warn({ err: cause, kind, failure }, 'sign-in refused');
        return failed(failure);
      }
      // The session id derives from the state, so that a replayed answer opens no second session.
      const place = { ...signInPlace(request), sessionId: sessionIdOf(state) };
      const made = await createSession(database, outcome.proof, place);
      if (made === undefined) return failed('AuthFailed');
      const cookie = serializeSessionCookie(made.token, settings.accounts.sessionCookieSecure);
      return redirect(302, '/dashboard', { 'Set-Cookie': [cookie, ...ended] });
    } catch (error) {
      log.error({ err: error, kind }, 'sign-in at a provider failed');
      return failed('AuthError');
    }
  }
}

function outcomesOf(
  kind: ProviderKind,
  { database, secrets, settings }: Dependencies,
): ProviderOutcomes {
  const store = { database, secrets, settings: settings.accounts };
  return {
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
}

export const toLogin = (
  prefix: string,
  failure: string,
  cookies: readonly string[] = [],
): RedirectReply<302> =>
  redirect(302, `/login?error=${prefix}${failure}`, { 'Set-Cookie': cookies });

const sessionIdOf = (state: string): string => tokenHash(`session of ${state}`).slice(0, 32);
