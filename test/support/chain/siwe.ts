import { createSiweMessage, type SiweMessage } from 'viem/siwe';
import { CHAIN_ID } from './chain.js';

/** `WEB_URL` of tests, unless they set another. */
export const WEB_URL = 'http://127.0.0.1:3000';

/** A message as a wallet would sign it for us, with what a test wants otherwise. */
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
