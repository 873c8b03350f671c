import type { Hex } from 'viem';
import { lowerCaseOf, parseAddress } from '../../money/chain/address.js';
import type { Chain } from '../../money/chain/chain-node.js';
import { BadRequestError } from '../../lib/errors.js';
import { parseSiweMessage, type SiweMessage } from './siwe-message.js';
import type { WalletNonces } from './wallet-nonces.js';
import { isSignedByWallet } from '../../money/chain/wallet-signature.js';

/** Maximum age of a message and maximum difference between clocks, in milliseconds. */
const MAX_AGE_MS = 10 * 60_000;
const CLOCK_SKEW_MS = 60_000;

/** A claim to a wallet, with its signed message. */
export interface WalletClaim {
  readonly address: string;
  /** An EIP-4361 message with a nonce of this platform. */
  readonly message: string;
  /** The signature in hex. */
  readonly signature: string;
}

interface Parts {
  readonly nonces: WalletNonces;
  /** The platform's chain, which verifies signatures of contracts. */
  readonly chain: Chain;
  /** Chains that a message may name. */
  readonly chainIds: readonly number[];
  readonly webUrl: string;
}

const BYTES = /^0x(?:[\da-f]{2})+$/;

/** Verifies that a user owns a wallet, by a recent message that the wallet signed once for this platform. */
export class WalletProofs {
  readonly nonces: WalletNonces;
  readonly #parts: Omit<Parts, 'nonces'>;
  readonly #host: string;
  readonly #origin: string;

  constructor({ nonces, ...parts }: Parts) {
    this.nonces = nonces;
    this.#parts = parts;
    ({ host: this.#host, origin: this.#origin } = new URL(parts.webUrl));
  }

  /**
   * Verifies a signed message and returns the wallet; uses up its nonce only if all other checks succeed, so
   * that the message can be sent again while the chain is unavailable. Undefined if not proven.
   * @param owner the user or client on whose behalf the chain is read.
   * @throws BadRequestError for invalid or mismatching input; ChainAwayError while a contract's chain is
   * unavailable.
   */
  async verify(shown: WalletClaim, owner: string, now = Date.now()): Promise<Hex | undefined> {
    const address = parseAddress(shown.address);
    if (address === undefined) {
      throw new BadRequestError('address must be 0x and 40 hex digits, with a right checksum');
    }
    const signature = lowerCaseOf(shown.signature);
    if (!BYTES.test(signature)) throw new BadRequestError('signature must be hex');
    const message = parseSiweMessage(shown.message);
    if (!message) throw new BadRequestError('message must be a sign-in message (EIP-4361)');
    if (parseAddress(message.address) !== address) {
      throw new BadRequestError('message names another address');
    }
    const { nonces } = this;
    const { chain } = this.#parts;
    if (!this.#isForUs(message) || !isTimely(message, now)) return undefined;
    if (!nonces.isAuthentic(message.nonce, now)) return undefined;
    // A contract at this address on another chain may have another owner.
    const isHere = message.chainId === chain.chainId;
    const queries = isHere ? chain.onBehalfOf({ owner, isUrgent: true }) : undefined;
    const signed = { address, text: shown.message, signature };
    if (!(await isSignedByWallet(signed, queries))) return undefined;
    return (await nonces.use(message.nonce)) ? address : undefined;
  }

  #isForUs({ chainId, domain, scheme, uri, version }: SiweMessage): boolean {
    return (
      domain === this.#host &&
      (scheme === undefined || `${scheme}://${domain}` === this.#origin) &&
      URL.canParse(uri) &&
      new URL(uri).origin === this.#origin &&
      version === '1' &&
      this.#parts.chainIds.includes(chainId)
    );
  }
}

function isTimely({ issuedAt, expirationTime, notBefore }: SiweMessage, now: number): boolean {
  const age = now - issuedAt.getTime();
  return (
    age <= MAX_AGE_MS &&
    age >= -CLOCK_SKEW_MS &&
    (expirationTime === undefined || expirationTime.getTime() > now) &&
    (notBefore === undefined || notBefore.getTime() <= now + CLOCK_SKEW_MS)
  );
}
