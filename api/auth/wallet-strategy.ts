import { Strategy } from 'passport';
import * as z from 'zod';
import { IdentityRefusedError } from '../../src/accounts/accounts/proven-identity.js';
import type { SignInProof } from '../../src/accounts/accounts/sign-in.js';
import type { ShownWallet } from '../../src/accounts/accounts/wallet-proofs.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { SignInRequest } from './sign-in.js';

/** @returns undefined when it is not proven. @throws IdentityRefusedError for a wallet that opens nothing. */
type Verify = (shown: ShownWallet, origin: RequestOrigin) => Promise<SignInProof | undefined>;

const shownWallet = z.object({ address: z.string(), message: z.string(), signature: z.string() });

/** Sign-in by a message that a wallet has signed. */
export class WalletStrategy extends Strategy {
  override readonly name = 'wallet';
  // No #private: passport runs an object that only inherits from this one.
  private readonly verify: Verify;

  constructor(verify: Verify) {
    super();
    this.verify = verify;
  }

  override authenticate(request: object): void {
    // Passport hands on what `SignIn` was asked with; its types know Express alone.
    const { body, origin } = request as SignInRequest;
    const shown = shownWallet.safeParse(body);
    if (!shown.success) return this.fail(400);
    this.verify(shown.data, origin).then(
      (proof) => (proof ? this.success(proof) : this.fail(401)),
      (error: Error) => {
        if (error instanceof IdentityRefusedError) this.fail(error);
        else this.error(error);
      },
    );
  }
}
