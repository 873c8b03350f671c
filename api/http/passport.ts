import type { Strategy } from 'passport';

/** A user that a strategy has found. */
export interface AuthenticatedUser {
  readonly id: string;
  readonly name: string;
}

/** A strategy, as far as one for request bodies is concerned: passport's types want all of Express. */
interface BodyStrategy {
  authenticate(request: { readonly body: unknown; readonly query: object }, options: object): void;
}

/**
 * Runs one of passport's strategies on a request body, without passport's Express middleware: a
 * strategy tells its outcome through methods that whoever runs it puts on it.
 *
 * @returns none when the strategy refuses.
 */
export function runStrategy(
  strategy: Strategy,
  body: unknown,
): Promise<AuthenticatedUser | undefined> {
  return new Promise((resolve, reject) => {
    const outcome = {
      success: (user: AuthenticatedUser) => resolve(user),
      fail: () => resolve(undefined),
      error: (error: Error) => reject(error),
    };
    // One object for each request, as passport does, so that two at once do not meet.
    const run = Object.assign(Object.create(strategy) as BodyStrategy, outcome);
    run.authenticate({ body, query: {} }, {});
  });
}
