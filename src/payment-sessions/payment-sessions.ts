import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Hex } from 'viem';
import { recordAudit } from '../audit/audit.js';
import type { ChainNode } from '../chain/chain-node.js';
import { PATH_USD } from '../chain/tempo.js';
import { violates } from '../database/constraints.js';
import type { Database, Statements } from '../database/database.js';
import type { PaymentSessionRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { paymentSessions } from '../database/tables/payment-sessions.js';
import {
  NotFoundError,
  PaymentRequiredError,
  ServiceError,
  TooManyRequestsError,
  UnavailableError,
} from '../errors.js';
import { formatAmount } from '../money/money.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { tokenHash } from '../secrets/token-hash.js';
import { linkedWallets } from '../wallets/own-wallets.js';
import { readHold, WrongEscrowError, type Escrow } from './escrow.js';
import {
  holdIdOf,
  HoldSignature,
  holdTypedData,
  isInTime,
  latestDeadline,
  newNonce,
  type Hold,
} from './hold-authorization.js';
import { requestHold } from './session-holds.js';
import { newSessionToken, sessionTokenContext, storedOf } from './session-token.js';
import { beginClosing, settledBy } from './session-settlements.js';
import type { SessionHaste } from './session-haste.js';
import type { SessionWatch } from './session-watch.js';
import { OPEN_STATES } from './states.js';

/** For how long a request waits until its session is open, in milliseconds. */
const OPENING_MS = 20_000;

/** For how long a request waits until its session is closed, in milliseconds. */
const CLOSING_MS = 30_000;

/** Seconds after which to ask again for one that is not. */
const RETRY_AFTER_S = 5;

/**
 * Openings of wallets that have code which were reverted on chain, in an hour, after which none of such wallets is
 * asked for: each has cost a fee. Of one wallet it is one.
 */
const MAX_REVERTED = 20;

const AN_HOUR_S = 3_600;

/** Sessions of a page. */
const PAGE = 50;

/** What a wallet has signed. */
export interface Authorization {
  /** 32 bytes in hex, in lower case. */
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly deadline: bigint;
  readonly signature: Hex;
}

/** The same, once it is known that it was the wallet. */
interface Signed extends Authorization {
  readonly word: HoldSignature;
}

export interface WantedSession {
  /** In lower case. */
  readonly address: Hex;
  /** Base units. */
  readonly deposit: bigint;
  readonly authorization?: Authorization | undefined;
}

const INSERT = `
  INSERT INTO payment_sessions
    (id, user_id, token_hash, token_end, sealed_token, address, chain_id, escrow, hold_id, nonce,
     authorization_deadline, deposit)
  VALUES ($id, $userId, $tokenHash, $tokenEnd, $sealedToken, $address, $chainId::bigint, $escrow, $holdId,
          $nonce, $authorizationDeadline, $deposit::numeric)`;

/** Who asks for a session. */
export interface Opener {
  /** Undefined for whoever is not signed in. */
  readonly userId: string | undefined;
  readonly requestId: string;
}

/** A session, and its id for those who may have it. */
export interface ShownSession {
  readonly session: PaymentSessionRow;
  /** Undefined where it is shown masked. */
  readonly token: string | undefined;
}

/** A session that is closed, or is being. */
export interface ClosedSession {
  readonly session: PaymentSessionRow;
  /** Hashes of the transactions that have moved something of its deposit for good, oldest first. */
  readonly transactions: readonly string[];
}

/** Not before the wallet has signed. */
export class AuthorizationRequiredError extends ServiceError {
  constructor(typedData: object, message = 'Wallet authorization required') {
    super(401, message, 'AUTHORIZATION_REQUIRED', { typedData });
  }
}

/** It is being opened, and whoever asks again later finds it. */
export class StillOpeningError extends ServiceError {
  constructor() {
    super(503, 'The session is still being opened: ask again', undefined, {
      retryAfter: RETRY_AFTER_S,
    });
  }
}

interface Parts {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly node: ChainNode;
  /** Undefined where none is configured. */
  readonly escrow: Escrow | undefined;
  readonly payments: Pick<ChainPayments, 'request'>;
  readonly openings: Pick<SessionWatch, 'ended'>;
  readonly closings: Pick<SessionWatch, 'ended'>;
  readonly haste: Pick<SessionHaste, 'open' | 'close'>;
  readonly log: Logger;
  /** Milliseconds that a request waits; 20 seconds unless said. */
  readonly openingMs?: number;
  /** The same until it is closed; 30 seconds unless said. */
  readonly closingMs?: number;
}

/** Payment sessions as wallets see them: a row is all that opens one. */
export class PaymentSessions {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Opens a session, or finds the one that the wallet has.
   *
   * @throws AuthorizationRequiredError; PaymentRequiredError `ESCROW_INSUFFICIENT`; StillOpeningError;
   *   UnavailableError where none can be opened; TooManyRequestsError; ChainAwayError.
   */
  async open(
    by: Opener,
    wanted: WantedSession,
    signal: AbortSignal,
  ): Promise<ShownSession & { readonly isNew: boolean }> {
    const { escrow } = this.#parts;
    if (!escrow) throw new UnavailableError('Payment sessions are not configured');
    const waits = AbortSignal.any([
      signal,
      AbortSignal.timeout(this.#parts.openingMs ?? OPENING_MS),
    ]);
    const isKept = await this.#isKept(by, wanted.address);
    const isOwner = isKept || (await this.#isOwner(by, wanted.address));
    let signed = isKept ? undefined : await this.#signedOf(escrow, wanted);
    if (!signed && !isOwner) throw this.#unauthorized(escrow, wanted);
    // One that fails while it is waited for makes room for another.
    while (!waits.aborted) {
      const existing = await this.#findOpen(escrow, wanted.address);
      if (existing) {
        const session = await this.#opened(existing.id, waits);
        if (!session) continue;
        const shows = isOwner || (signed && (await this.#isFirst(escrow, wanted.address, signed)));
        return { session, token: shows ? this.tokenOf(session) : undefined, isNew: false };
      }
      if (!isKept && !signed) throw this.#unauthorized(escrow, wanted);
      const [hasCode, available, isPublished] = await Promise.all([
        this.#parts.node.hasCode(wanted.address),
        this.#availableOf(escrow, wanted.address),
        signed && !isOwner && this.#isPublished(escrow, wanted.address, signed),
      ]);
      if (isPublished) throw this.#unauthorized(escrow, wanted);
      if (hasCode) {
        // The key that is kept counts for nothing there.
        signed ??= await this.#signedOf(escrow, wanted);
        await this.#requireAccepted(escrow, wanted, signed);
      }
      requireCover(escrow, wanted, available);
      const made = await this.#insert(by, escrow, wanted, signed);
      if (made === 'another') continue;
      if (made === 'used') throw this.#unauthorized(escrow, wanted);
      const session = await this.#opened(made.id, waits);
      if (session) return { session, token: made.token, isNew: true };
      requireCover(escrow, wanted, await this.#availableOf(escrow, wanted.address));
      throw new UnavailableError('The session could not be opened: sign anew, and ask again');
    }
    throw new StillOpeningError();
  }

  /**
   * Closes a session, for whoever has its id: nothing is debited any more, what was delivered is settled,
   * and the rest is its wallet's again. Again it tells the same.
   *
   * @returns the session once it is closed, or as it is when a request has waited for long enough.
   */
  async close({ id }: Pick<PaymentSessionRow, 'id'>, signal: AbortSignal): Promise<ClosedSession> {
    await beginClosing(this.#platform, id);
    const waits = AbortSignal.any([
      signal,
      AbortSignal.timeout(this.#parts.closingMs ?? CLOSING_MS),
    ]);
    const { closings, haste } = this.#parts;
    const session = await closings.ended(id, waits, (...args) => haste.close(...args));
    if (!session) throw new NotFoundError('Session not found');
    return { session, transactions: await settledBy(this.#platform, id) };
  }

  /** Those that a wallet has opened, newest first: a page of them. */
  async list(address: Hex): Promise<PaymentSessionRow[]> {
    return this.#platform.query<PaymentSessionRow>(
      `${selectFrom(paymentSessions)} WHERE address = $address AND opened_at IS NOT NULL
        ORDER BY created_at DESC, id DESC LIMIT ${PAGE}`,
      { address },
    );
  }

  /** Whether somebody has shown that the wallet is theirs. */
  async isOwner(userId: string | undefined, address: Hex): Promise<boolean> {
    return this.#isOwner({ userId }, address);
  }

  /** The id of a session, for nobody but its owner. */
  tokenOf({ id, sealedToken }: Pick<PaymentSessionRow, 'id' | 'sealedToken'>): string {
    return this.#parts.secrets.open(sealedToken, sessionTokenContext(id));
  }

  get #platform() {
    return this.#parts.database.asPlatform();
  }

  /** Whether we sign for it, as the wallet of whoever asks. */
  async #isKept({ userId }: Pick<Opener, 'userId'>, address: Hex): Promise<boolean> {
    if (userId === undefined) return false;
    const [kept] = await this.#platform.query(
      `SELECT FROM wallets WHERE user_id = $userId AND address = $address
          AND kind IN ('user', 'imported') AND sealed_key IS NOT NULL LIMIT 1`,
      { userId, address },
    );
    return kept !== undefined;
  }

  async #isOwner({ userId }: Pick<Opener, 'userId'>, address: Hex): Promise<boolean> {
    if (userId === undefined) return false;
    return (await linkedWallets(this.#platform, userId)).includes(address);
  }

  /** Undefined unless the wallet has signed this, for now. */
  async #signedOf(escrow: Escrow, wanted: WantedSession): Promise<Signed | undefined> {
    const { authorization } = wanted;
    if (!authorization || !isInTime(authorization.deadline)) return undefined;
    const hold = holdOf(wanted, authorization);
    const { signature } = authorization;
    const word = new HoldSignature(domainOf(escrow), hold, signature, this.#parts.node);
    return (await word.isOfWallet()) ? { ...authorization, word } : undefined;
  }

  /**
   * Whether nobody else can have seen this authorization: what has opened a session is on the chain, whoever
   * has signed it, and what was shown once is used up.
   */
  async #isFirst(escrow: Escrow, address: Hex, signed: Authorization): Promise<boolean> {
    const [published] = await this.#platform.query(
      `SELECT FROM payment_sessions
        WHERE chain_id = $chainId AND escrow = $escrow AND address = $address AND nonce = $nonce`,
      { chainId: escrow.chainId, escrow: escrow.terms.escrow, address, nonce: signed.nonce },
    );
    if (published || (await this.#isPublished(escrow, address, signed))) return false;
    return this.#useUp(escrow, address, signed);
  }

  /**
   * Whether the chain shows an authorization to everybody, also where the database knows nothing of it any more,
   * as after it was restored. @throws ChainAwayError
   */
  async #isPublished(
    { terms }: Escrow,
    payer: Hex,
    { nonce }: Pick<Authorization, 'nonce'>,
  ): Promise<boolean> {
    const id = holdIdOf({ payer, nonce });
    return (await readHold(this.#parts.node, terms.escrow, id)) !== undefined;
  }

  /** @returns false for an authorization that somebody has shown before. */
  async #useUp(
    escrow: Escrow,
    address: Hex,
    { deadline, nonce }: Pick<Authorization, 'nonce' | 'deadline'>,
    db: Statements = this.#platform,
  ): Promise<boolean> {
    const used = await db.query(
      `INSERT INTO used_nonces (id, expires_at) VALUES ($id, $expiresAt)
       ON CONFLICT DO NOTHING RETURNING id`,
      {
        id: tokenHash(`hold:${escrow.chainId}:${escrow.terms.escrow}:${address}:${nonce}`),
        expiresAt: dateOf(deadline),
      },
    );
    return used.length === 1;
  }

  async #findOpen(escrow: Escrow, address: Hex): Promise<PaymentSessionRow | undefined> {
    const [found] = await this.#platform.query<PaymentSessionRow>(
      `${selectFrom(paymentSessions)}
        WHERE chain_id = $chainId AND address = $address AND state = ANY ($states)`,
      { chainId: escrow.chainId, address, states: OPEN_STATES },
    );
    return found;
  }

  /** @returns undefined for one that was not opened. @throws StillOpeningError */
  async #opened(id: string, signal: AbortSignal): Promise<PaymentSessionRow | undefined> {
    const { haste, openings } = this.#parts;
    const session = await openings.ended(id, signal, (...args) => haste.open(...args));
    if (!session || session.state === 'opening') throw new StillOpeningError();
    return session.state === 'failed' ? undefined : session;
  }

  /**
   * The escrow asks a wallet that has code what it thinks of a signature, also where its key has signed
   * (EIP-7702). What that code does there in the end, and what of our fee it uses up, shows there alone.
   *
   * @throws AuthorizationRequiredError, TooManyRequestsError, ChainAwayError
   */
  async #requireAccepted(
    escrow: Escrow,
    wanted: WantedSession,
    signed: Signed | undefined,
  ): Promise<void> {
    if (!(await signed?.word.isTakenByCode())) {
      const message =
        'The wallet has code: the escrow asks that, not its key, for its word (ERC-1271)';
      throw this.#unauthorized(escrow, wanted, message);
    }
    const [reverted] = await this.#platform.query<{ own: number; all: number }>(
      `SELECT count(*) FILTER (WHERE address = $address)::integer AS own, count(*)::integer AS all
         FROM payment_sessions
        WHERE failure = 'reverted' AND created_at > now() - make_interval(secs => ${AN_HOUR_S})`,
      { address: wanted.address },
    );
    if (!reverted || (reverted.own === 0 && reverted.all < MAX_REVERTED)) return;
    throw new TooManyRequestsError(
      'Openings of wallets that have code were reverted on chain: ask again later',
      undefined,
      { retryAfter: AN_HOUR_S },
    );
  }

  /** @throws UnavailableError, ChainAwayError */
  async #availableOf(escrow: Escrow, address: Hex): Promise<bigint> {
    try {
      return await escrow.available(address);
    } catch (error) {
      if (!(error instanceof WrongEscrowError)) throw error;
      this.#parts.log.error({ err: error }, 'no payment session can be opened');
      throw new UnavailableError('Payment sessions are not available', { cause: error });
    }
  }

  /** `another`: the wallet has one; `used`: the authorization has been used. */
  async #insert(
    { requestId, userId }: Opener,
    escrow: Escrow,
    wanted: WantedSession,
    signed: Authorization | undefined,
  ): Promise<{ readonly id: string; readonly token: string } | 'another' | 'used'> {
    const { database, payments, secrets } = this.#parts;
    const { address, deposit } = wanted;
    const token = newSessionToken();
    const id = randomUUID();
    const { deadline, nonce } = signed ?? { nonce: newNonce(), deadline: latestDeadline() };
    const row = {
      ...{ id, ...storedOf(token), address, nonce, escrow: escrow.terms.escrow },
      userId: signed ? null : (userId ?? null),
      sealedToken: secrets.seal(token, sessionTokenContext(id)),
      chainId: String(escrow.chainId),
      holdId: holdIdOf({ payer: address, nonce }),
      authorizationDeadline: dateOf(deadline),
      deposit: String(deposit),
    };
    try {
      // Sent together, in this order.
      await database.asPlatform().statements(async (db) => {
        const [, isFirst] = await Promise.all([
          db.query(INSERT, row),
          signed && this.#useUp(escrow, address, signed, db),
          signed && requestHold(db, payments, escrow.terms.operator, row, signed.signature),
          userId !== undefined &&
            recordAudit(db, {
              ...{ actor: userId, userId, requestId, action: 'payment-session.open', subject: id },
              detail: { address, deposit: String(deposit) },
            }),
        ]);
        if (isFirst === false) throw new UsedError();
      });
      return { id, token };
    } catch (error) {
      if (error instanceof UsedError) return 'used';
      if (violates(error, 'payment_sessions_open')) return 'another';
      if (!violates(error, 'payment_sessions_authorization')) throw error;
      // By a session that is over, unless there is one.
      return (await this.#findOpen(escrow, address)) ? 'another' : 'used';
    }
  }

  /** With what the wallet is to sign. */
  #unauthorized(escrow: Escrow, wanted: WantedSession, error?: string): AuthorizationRequiredError {
    const fresh = { nonce: newNonce(), deadline: latestDeadline() };
    const { message, ...typedData } = holdTypedData(domainOf(escrow), holdOf(wanted, fresh));
    const asJson = {
      ...typedData,
      // JSON has no numbers of this size.
      message: {
        ...message,
        amount: String(message.amount),
        deadline: String(message.deadline),
      },
    };
    return new AuthorizationRequiredError(asJson, error);
  }
}

/** @throws PaymentRequiredError */
function requireCover(
  { chainId, terms: { escrow } }: Escrow,
  { deposit }: Pick<WantedSession, 'deposit'>,
  available: bigint,
): void {
  if (available >= deposit) return;
  throw new PaymentRequiredError(
    'The escrow has not as much of yours: deposit it there, and ask again',
    'ESCROW_INSUFFICIENT',
    {
      available: formatAmount(available),
      required: formatAmount(deposit),
      ...{ escrow, token: PATH_USD, chainId },
    },
  );
}

/** Ends the transaction of a session whose authorization was used before. */
class UsedError extends Error {
  override readonly name = 'UsedError';
}

const domainOf = ({ chainId, terms }: Escrow) => ({ chainId, escrow: terms.escrow });

const holdOf = (
  { address, deposit }: WantedSession,
  { deadline, nonce }: Pick<Authorization, 'nonce' | 'deadline'>,
): Hold => ({ payer: address, amount: deposit, nonce, deadline });

const dateOf = (seconds: bigint) => new Date(Number(seconds) * 1_000);
