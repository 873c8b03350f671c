import { Strategy } from 'passport-local';
import type { PasswordSignIn, SignInProof } from '../../src/accounts/accounts/sign-in.js';
import type { SignInRequest } from './sign-in.js';

/** Sign-in by email and password. */
export function passwordStrategy(
  verify: (shown: PasswordSignIn) => Promise<SignInProof | undefined>,
): Strategy {
  const options = { usernameField: 'email', passReqToCallback: true } as const;
  return new Strategy(options, (request, email, password, done) => {
    // Passport hands on what `SignIn` was asked with; its types know Express alone.
    const { from } = request as unknown as SignInRequest;
    verify({ email, password, from }).then(
      (proof) => done(null, proof ?? false),
      (error: unknown) => done(error),
    );
  });
}
