import { Strategy } from 'passport-local';
import type { PasswordSignIn, SignInProof } from '../../src/accounts/accounts/sign-in.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import type { SignInRequest } from './sign-in.js';

export function passwordStrategy(
  verify: (shown: PasswordSignIn) => Promise<SignInProof | undefined>,
): Strategy {
  const options = { usernameField: 'email', passReqToCallback: true } as const;
  return new Strategy(options, (request, email, password, done) => {
    // Passport passes on the request of `SignIn`; its types only allow Express requests.
    const { origin } = request as unknown as SignInRequest;
    verify({ email, password, from: networksOf(origin.address) }).then(
      (proof) => done(null, proof ?? false),
      (error: unknown) => done(error),
    );
  });
}
