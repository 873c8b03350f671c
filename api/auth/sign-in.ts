import passport, { type Strategy } from 'passport';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { SignInProof } from '../../src/accounts/accounts/sign-in.js';
import type { ClientNetworks } from '../../src/platform/http/client-networks.js';

/** What a strategy reads; passport's own types want all of Express. */
export interface SignInRequest {
  readonly body?: unknown;
  readonly from: ClientNetworks;
  readonly origin: RequestOrigin;
  readonly query: Readonly<Record<string, unknown>>;
}

/** What a strategy made of a request. */
export type SignInOutcome =
  | { readonly kind: 'proven'; readonly proof: SignInProof }
  | { readonly kind: 'refused'; readonly why: unknown }
  | { readonly kind: 'redirect'; readonly location: string };

type Middleware = (request: SignInRequest, response: object, next: (error: Error) => void) => void;

type Told = (error: Error | null, proof?: SignInProof | false, why?: unknown) => void;

/** The ways to sign in: passport's strategies, by their names. */
export class SignIn {
  readonly #passport = new passport.Passport();

  constructor(strategies: readonly Strategy[]) {
    for (const strategy of strategies) this.#passport.use(strategy);
  }

  /** @returns undefined when the strategy refuses. */
  async by(strategy: string, request: SignInRequest): Promise<SignInProof | undefined> {
    const outcome = await this.attempt(strategy, request);
    return outcome.kind === 'proven' ? outcome.proof : undefined;
  }

  /** By a strategy that may send the browser elsewhere. */
  attempt(strategy: string, request: SignInRequest): Promise<SignInOutcome> {
    return new Promise((resolve, reject) => {
      const told: Told = (error, proof, why) => {
        if (error) reject(error);
        else resolve(proof ? { kind: 'proven', proof } : { kind: 'refused', why });
      };
      // Passport types its middleware as `any`, since that depends on the framework.
      const run = this.#passport.authenticate(strategy, { session: false }, told) as Middleware;
      // Of its own objects it makes what Express has: one of each for each request.
      run({ ...request }, redirectable(resolve), reject);
    });
  }
}

/** A response as far as passport uses one: to redirect. */
function redirectable(resolve: (outcome: SignInOutcome) => void) {
  let location = '';
  return {
    setHeader(name: string, value: string) {
      if (name === 'Location') location = value;
    },
    end: () => resolve({ kind: 'redirect', location }),
  };
}
