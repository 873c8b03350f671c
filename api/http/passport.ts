import type { Strategy } from 'passport';

/** A user that a strategy has found. */
export interface AuthenticatedUser {
  readonly id: string;
  readonly name: string;
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
      pass: () => resolve(undefined),
      redirect: () => reject(new TypeError('a strategy for a body cannot redirect')),
      error: (error: unknown) => reject(error),
    };
    // One object for each request, as passport does, so that two at once do not meet.
    const run = Object.assign(Object.create(strategy) as Strategy, outcome);
    // Of a request, a strategy for bodies reads nothing else. The types want all of Express.
    const request = { body, query: {} } as Parameters<Strategy['authenticate']>[0];
    Reflect.apply(strategy.authenticate, run, [request, {}]);
  });
}
