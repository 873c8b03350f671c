import passport, { type Strategy } from 'passport';
import type { RequestOrigin } from '../../src/audit/audit.js';
import type { SignInProof } from '../../src/accounts/sign-in.js';
import type { ClientNetworks } from '../../src/http/client-networks.js';

/** What a strategy reads; passport's own types want all of Express. */
export interface SignInRequest {
  readonly body?: unknown;
  readonly from: ClientNetworks;
  readonly origin: RequestOrigin;
  readonly query: Readonly<Record<string, unknown>>;
}

type Middleware = (request: SignInRequest, response: object, next: (error: Error) => void) => void;

type Outcome = (error: Error | null, proof?: SignInProof | false) => void;

/** The ways to sign in: passport's strategies, by their names. */
export class SignIn {
  readonly #passport = new passport.Passport();

  constructor(strategies: readonly Strategy[]) {
    for (const strategy of strategies) this.#passport.use(strategy);
  }

  /** @returns undefined when the strategy refuses. */
  by(strategy: string, request: SignInRequest): Promise<SignInProof | undefined> {
    return new Promise((resolve, reject) => {
      const told: Outcome = (error, proof) => (error ? reject(error) : resolve(proof || undefined));
      // Passport types its middleware as `any`, since that depends on the framework.
      const run = this.#passport.authenticate(strategy, { session: false }, told) as Middleware;
      // Of its own object it makes what Express has: one for each request.
      run({ ...request }, {}, reject);
    });
  }
}
