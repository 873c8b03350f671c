import passport, { type Strategy } from 'passport';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { SignInProof } from '../../src/accounts/accounts/sign-in.js';

/** The request properties that strategies read; passport's own types require an Express request. */
export interface SignInRequest {
  readonly body?: unknown;
  readonly origin: RequestOrigin;
  readonly query: Readonly<Record<string, unknown>>;
}

export type SignInOutcome =
  | { readonly kind: 'proven'; readonly proof: SignInProof }
  | { readonly kind: 'refused'; readonly why: unknown }
  | { readonly kind: 'redirect'; readonly location: string };

type Middleware = (request: SignInRequest, response: object, next: (error: Error) => void) => void;

type AuthenticateCallback = (
  error: Error | null,
  proof?: SignInProof | false,
  why?: unknown,
) => void;

/** The passport strategies for signing in, by name. */
export class SignIn {
  readonly #passport = new passport.Passport();

  constructor(strategies: readonly Strategy[]) {
    for (const strategy of strategies) this.#passport.use(strategy);
  }

  /** Signs in by a strategy that does not redirect; undefined if the strategy rejects the request. */
  async by(strategy: string, request: SignInRequest): Promise<SignInProof | undefined> {
    const outcome = await this.attempt(strategy, request);
    return outcome.kind === 'proven' ? outcome.proof : undefined;
  }

  /** Runs a strategy that may redirect the browser. */
  attempt(strategy: string, request: SignInRequest): Promise<SignInOutcome> {
    return new Promise((resolve, reject) => {
      const onResult: AuthenticateCallback = (error, proof, why) => {
        if (error) reject(error);
        else resolve(proof ? { kind: 'proven', proof } : { kind: 'refused', why });
      };
      // Passport types its middleware as `any`, because the type depends on the framework.
      const run = this.#passport.authenticate(strategy, { session: false }, onResult) as Middleware;
      // Passport adds Express methods to these objects, so each run gets fresh copies.
      run({ ...request }, redirectable(resolve), reject);
    });
  }
}

/** Returns the part of a response that passport uses to redirect. */
function redirectable(resolve: (outcome: SignInOutcome) => void) {
  let location = '';
  return {
    setHeader(name: string, value: string) {
      if (name === 'Location') location = value;
    },
    end: () => resolve({ kind: 'redirect', location }),
  };
}
