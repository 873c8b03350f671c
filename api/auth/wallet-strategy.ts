import { Strategy } from 'passport';
import * as z from 'zod';
import { IdentityRefusedError } from '../../src/accounts/accounts/proven-identity.js';
import type { SignInProof } from '../../src/accounts/accounts/sign-in.js';
import type { WalletClaim } from '../../src/accounts/accounts/wallet-proofs.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { SignInRequest } from './sign-in.js';

/**
 * Verifies a wallet's proof.
 * @returns undefined if the proof is invalid.
 * @throws IdentityRefusedError if the wallet may not sign in.
 */
type Verify = (shown: WalletClaim, origin: RequestOrigin) => Promise<SignInProof | undefined>;

const shownWallet = z.object({ address: z.string(), message: z.string(), signature: z.string() });

export class WalletStrategy extends Strategy {
  override readonly name = 'wallet';
  // No #private: passport calls methods on an object that inherits from this instance.
  private readonly verify: Verify;

  constructor(verify: Verify) {
    super();
    this.verify = verify;
  }

  override authenticate(request: object): void {
    // Passport passes on the request of `SignIn`; its types only allow Express requests.
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
