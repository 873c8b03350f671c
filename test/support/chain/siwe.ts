import { createSiweMessage, type SiweMessage } from 'viem/siwe';
import { CHAIN_ID } from './chain.js';

/** Default `WEB_URL` of tests. */
export const WEB_URL = 'http://127.0.0.1:3000';

/** Returns a sign-in message for the platform, with the fields that a test overrides. */
export function siweMessage(
  said: Pick<SiweMessage, 'address' | 'nonce'> & Partial<SiweMessage>,
): string {
  const { host, origin } = new URL(WEB_URL);
  return createSiweMessage({
    domain: host,
    uri: origin,
    version: '1',
    chainId: CHAIN_ID,
    issuedAt: new Date(),
    ...said,
  });
}
