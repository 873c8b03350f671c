import { Strategy, type StrategyCreated } from 'passport';
import {
  IdentityRefusedError,
  type Applicant,
} from '../../src/accounts/accounts/proven-identity.js';
import type { SignInProof } from '../../src/accounts/accounts/sign-in.js';
import type { SignInProvider } from '../../src/accounts/accounts/sign-in-provider.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { ProviderFlow } from './provider-flows.js';
import type { SignInRequest } from './sign-in.js';

/** A request that begins a flow, or that the provider has sent a browser back with. */
export interface ProviderRequest extends SignInRequest {
  readonly step: 'begin' | 'answer';
  /** Of an answer: undefined when this browser has begun none of that state. */
  readonly flow: ProviderFlow | undefined;
  /** Of an answer: the session that the browser has. */
  readonly sessionId?: string | undefined;
  readonly origin: RequestOrigin;
}

/** What is made of who somebody has proven to be. */
export interface ProviderOutcomes {
  /** @throws IdentityRefusedError */
  signIn(applicant: Applicant, origin: RequestOrigin): Promise<SignInProof>;
  /** @returns where the browser goes then. @throws IdentityRefusedError */
  link(
    account: NonNullable<ProviderFlow['link']>,
    applicant: Applicant,
    origin: RequestOrigin,
  ): Promise<string>;
}

/**
 * Sign-in at somebody else: redirects there, succeeds with a proof, or fails with an `IdentityRefusedError`.
 * An answer to a flow that links redirects as well: nobody is signed in by it.
 */
export function providerStrategy(provider: SignInProvider, outcomes: ProviderOutcomes): Strategy {
  async function next(request: ProviderRequest): Promise<SignInProof | { location: string }> {
    const { flow, origin, query, sessionId, step } = request;
    if (flow === undefined) throw new IdentityRefusedError('AuthFailed');
    if (step === 'begin') return { location: (await provider.authorizationUrl(flow)).href };
    const { code, error, iss } = query;
    const isAnswered = typeof code === 'string' && error === undefined;
    // The account of one is never linked in the session of another.
    const isTheirs = flow.link === undefined || flow.link.sessionId === sessionId;
    if (!isAnswered || !isTheirs) throw new IdentityRefusedError('AuthFailed');
    const answer = { code, iss: typeof iss === 'string' ? iss : undefined };
    const applicant = await provider.prove(answer, flow);
    if (flow.link === undefined) return outcomes.signIn(applicant, origin);
    return { location: await outcomes.link(flow.link, applicant, origin) };
  }

  return new (class extends Strategy {
    override readonly name = provider.kind;

    override authenticate(this: StrategyCreated<Strategy>, request: unknown): void {
      // Passport hands on what `SignIn` was asked with; its types know Express alone.
      next(request as ProviderRequest).then(
        (next) => ('location' in next ? this.redirect(next.location) : this.success(next)),
        (error: unknown) => {
          if (error instanceof IdentityRefusedError) this.fail(error);
          else this.error(error);
        },
      );
    }
  })();
}
