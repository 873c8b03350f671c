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

/** A request that begins a flow, or that returns from the provider. */
export interface ProviderRequest extends SignInRequest {
  readonly step: 'begin' | 'answer';
  /** For `answer`: the flow that this browser began with the state; undefined if there is none. */
  readonly flow: ProviderFlow | undefined;
  /** For `answer`: the browser's session. */
  readonly sessionId?: string | undefined;
  readonly origin: RequestOrigin;
}

export interface ProviderOutcomes {
  /** Signs in by a proven identity. @throws IdentityRefusedError */
  signIn(applicant: Applicant, origin: RequestOrigin): Promise<SignInProof>;
  /**
   * Links a proven identity to an account.
   * @returns the location to redirect to.
   * @throws IdentityRefusedError
   */
  link(
    account: NonNullable<ProviderFlow['link']>,
    applicant: Applicant,
    origin: RequestOrigin,
  ): Promise<string>;
}

/**
 * Creates the strategy for sign-in at a provider: redirects there, succeeds with a proof, or fails with
 * an `IdentityRefusedError`. Completing a link flow also redirects, and opens no session.
 */
export function providerStrategy(provider: SignInProvider, outcomes: ProviderOutcomes): Strategy {
  async function next(request: ProviderRequest): Promise<SignInProof | { location: string }> {
    const { flow, origin, query, sessionId, step } = request;
    if (flow === undefined) throw new IdentityRefusedError('AuthFailed');
    if (step === 'begin') return { location: (await provider.authorizationUrl(flow)).href };
    const { code, error, iss } = query;
    const isAnswered = typeof code === 'string' && error === undefined;
    // A link flow must end in the session that began it.
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
      // Passport passes on the request of `SignIn`; its types only allow Express requests.
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
