import * as z from 'zod';
import { createSession } from '../../src/accounts/accounts/sessions.js';
import { signInByWallet } from '../../src/accounts/accounts/sign-in-by-wallet.js';
import { UnauthorizedError } from '../../src/lib/errors.js';
import { requestOwner } from '../../src/platform/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import { SignIn } from '../auth/sign-in.js';
import { WalletStrategy } from '../auth/wallet-strategy.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { chainAddress } from '../views/chain-address.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { replySignedIn, signedIn, signInHeaders, signInPlace } from './sign-in-place.js';

const wallets = area({ tag: 'Accounts', auth: anonymous });

export const NOT_SIGNED_BY_WALLET = 'The signature is not by this wallet';

export const walletProof = z
  .object({
    address: chainAddress,
    message: z.string().max(4_096).describe('EIP-4361 message with a nonce from `/api/auth/nonce`'),
    signature: z
      .string()
      .max(8_192)
      .describe("Hexadecimal: a key's 65-byte signature, or an ERC-1271 or ERC-6492 signature"),
  })
  .meta({ id: 'WalletProof' });

/** Creates the endpoints for signing in by wallet (spec 4.1). */
export function walletEndpoints({
  settings,
  database,
  refusals,
  secrets,
  wallets: proofs,
}: WebDependencies) {
  const store = { database, secrets, settings: settings.accounts };
  const signIn = new SignIn([
    new WalletStrategy(async (shown, origin) => {
      const wallet = await proofs.verify(shown, requestOwner(undefined, origin.address));
      return wallet && signInByWallet(store, wallet, origin);
    }),
  ]);
  const secure = settings.accounts.sessionCookieSecure;
  const nonce = (method: 'GET' | 'POST') =>
    wallets({
      method,
      path: '/api/auth/nonce',
      operationId: method === 'GET' ? 'getNonce' : 'createNonce',
      summary: 'Get a nonce for a wallet to sign; valid once, for 10 minutes',
      limit: LIMITS.nonce,
      responses: { 200: z.strictObject({ nonce: z.string(), expiresAt: z.iso.datetime() }) },
      handler() {
        const { nonce, expiresAt } = proofs.nonces.issue();
        return reply(200, { nonce, expiresAt: expiresAt.toISOString() });
      },
    });
  return [
    nonce('GET'),
    nonce('POST'),
    wallets({
      method: 'POST',
      path: '/api/wallet-auth',
      operationId: 'signInByWallet',
      summary: 'Sign in by a message signed by your wallet; the first sign-in creates an account',
      headers: signInHeaders,
      body: walletProof,
      limit: LIMITS.walletSignIn,
      responses: { 200: signedIn },
      errors: [401, 503],
      async handler(request) {
        const { body, clientAddress: address, origin } = request;
        const proof = await signIn.by('wallet', { body, query: {}, origin });
        const made = proof && (await createSession(database, proof, signInPlace(request)));
        if (!made) {
          refusals.note({ action: 'sign-in.failed', subject: body.address, address });
          throw new UnauthorizedError(NOT_SIGNED_BY_WALLET);
        }
        return replySignedIn(proof.user, made, secure);
      },
    }),
  ];
}
