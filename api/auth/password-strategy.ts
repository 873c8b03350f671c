import { Strategy } from 'passport-local';
import type { SignedInUser } from '../../src/accounts/sign-in.js';

/** Sign-in by email and password. */
export function passwordStrategy(
  verify: (email: string, password: string) => Promise<SignedInUser | undefined>,
): Strategy {
  return new Strategy({ usernameField: 'email' }, (email, password, done) => {
    verify(email, password).then(
      (user) => done(null, user ?? false),
      (error: unknown) => done(error),
    );
  });
}
