import type { Hex } from 'viem';
import type { ChainNode } from '../../money/chain/chain-node.js';
import { BadRequestError } from '../../lib/errors.js';
import { parseSiweMessage, type SiweMessage } from './siwe-message.js';
import type { WalletNonces } from './wallet-nonces.js';
import { isSignedByWallet } from '../../money/chain/wallet-signature.js';

/** How old a message may be, and how far clocks may be apart: milliseconds. */
const MAX_AGE_MS = 10 * 60_000;
const CLOCK_SKEW_MS = 60_000;

/** What somebody shows who says that a wallet is theirs. */
export interface ShownWallet {
  readonly address: string;
  /** An EIP-4361 message with a nonce of ours. */
  readonly message: string;
  /** In hex. */
  readonly signature: string;
}

interface Parts {
  readonly nonces: WalletNonces;
  /** The platform's own: contracts are asked there. */
  readonly chain: ChainNode;
  /** Those that a message may name. */
  readonly chainIds: readonly number[];
  /** Public address of the web API. */
  readonly webUrl: string;
}

const ADDRESS = /^0x[\da-f]{40}$/;
const BYTES = /^0x(?:[\da-f]{2})+$/;

/** Who has a wallet: by messages that wallets sign for us, now, and once. */
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
   * Uses up the message's nonce when all else is right, and only then: while the chain is away, the same
   * message can be shown again.
   *
   * @returns the wallet's address in lower case, or undefined where it is not proven.
   * @throws BadRequestError for what is no address, message or signature, or is of another address;
   *   ChainAwayError when a contract would have to be asked.
   */
  async verify(shown: ShownWallet, now = Date.now()): Promise<Hex | undefined> {
    const address = hexOf(ADDRESS, shown.address, 'address must be 0x and 40 hex digits');
    const signature = hexOf(BYTES, shown.signature, 'signature must be hex');
    const message = parseSiweMessage(shown.message);
    if (!message) throw new BadRequestError('message must be a sign-in message (EIP-4361)');
    if (message.address.toLowerCase() !== address) {
      throw new BadRequestError('message names another address');
    }
    const { nonces } = this;
    const { chain } = this.#parts;
    if (!this.#isForUs(message) || !isTimely(message, now)) return undefined;
    if (!nonces.isOurs(message.nonce, now)) return undefined;
    // A contract of this address on another chain may be somebody else's.
    const asked = message.chainId === chain.chainId ? chain : undefined;
    const signed = { address, text: shown.message, signature };
    if (!(await isSignedByWallet(signed, asked))) return undefined;
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

function hexOf(form: RegExp, text: string, otherwise: string): Hex {
  const lower = text.toLowerCase();
  if (!form.test(lower)) throw new BadRequestError(otherwise);
  return lower as Hex; // it begins with 0x
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
