import passport, { type Strategy } from 'passport';
import type { SignedInUser } from '../../src/accounts/sign-in.js';

/** What a strategy reads; passport's own types want all of Express. */
interface SignInRequest {
  readonly body?: unknown;
  readonly query: Readonly<Record<string, unknown>>;
}

type Middleware = (request: SignInRequest, response: object, next: (error: Error) => void) => void;

type Outcome = (error: Error | null, user?: SignedInUser | false) => void;

/** The ways to sign in: passport's strategies, by their names. */
export class SignIn {
  readonly #passport = new passport.Passport();

  constructor(strategies: readonly Strategy[]) {
    for (const strategy of strategies) this.#passport.use(strategy);
  }

  /** @returns undefined when the strategy refuses. */
  by(strategy: string, request: SignInRequest): Promise<SignedInUser | undefined> {
    return new Promise((resolve, reject) => {
      const told: Outcome = (error, user) => (error ? reject(error) : resolve(user || undefined));
      // Passport types its middleware as `any`, since that depends on the framework.
      const run = this.#passport.authenticate(strategy, { session: false }, told) as Middleware;
      // Of its own object it makes what Express has: one for each request.
      run({ ...request }, {}, reject);
    });
  }
}
