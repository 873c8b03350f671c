import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Hex } from 'viem';
import { recordAudit } from '../../platform/audit/audit.js';
import { shownAddress } from '../chain/address.js';
import type { Chain, ChainNode, NodeCaller } from '../chain/chain-node.js';
import { PATH_USD } from '../chain/tempo.js';
import { violates } from '../../platform/database/constraints.js';
import type { Database, Statements } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { paymentSessions } from '../../platform/database/tables/payment-sessions.js';
import {
  NotFoundError,
  PaymentRequiredError,
  ServiceError,
  TooManyRequestsError,
  UnavailableError,
} from '../../lib/errors.js';
import { formatAmount } from '../../types/money.js';
import type { GasBudget } from '../gas/gas-budget.js';
import type { ChainPayments } from '../payments/chain-payments.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { ownWallets } from '../wallets/own-wallets.js';
import { openingCause } from './causes.js';
import { ESCROW_GAS, readHold, WrongEscrowError, type Escrow } from './escrow.js';
import { failuresLimit } from './failed-openings.js';
import {
  hasTimeLeft,
  holdIdOf,
  HoldSignature,
  holdTypedData,
  isInTime,
  latestDeadline,
  newNonce,
  type Hold,
} from './hold-authorization.js';
import { requestHold } from './session-openings.js';
import { newSessionToken, sessionTokenContext, storedOf } from './session-token.js';
import { beginClosing, settledBy } from './session-settlements.js';
import type { SessionWatch } from './session-watch.js';
import { OPEN_STATES } from '../../types/payment-session-states.js';

/** Milliseconds that a request waits for its session to open. */
const OPENING_MS = 20_000;

/** Milliseconds that a request waits for its session to close. */
const CLOSING_MS = 30_000;

/** Seconds after which a client may retry when the wait has ended. */
const RETRY_AFTER_S = 5;

const PAGE = 50;

export interface Authorization {
  /** 32 bytes in hex, in lower case. */
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly deadline: bigint;
  readonly signature: Hex;
}

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

/** The client that opens a session. */
export interface Opener {
  /** Undefined without a sign-in. */
  readonly userId: string | undefined;
  readonly requestId: string;
  /** The user or client that the chain is asked for. */
  readonly owner: string;
  /** Network of the client's address. */
  readonly client: string;
}

/** A session, with its id for authorized clients. */
export interface ShownSession {
  readonly session: PaymentSessionRow;
  /** Undefined if the id is shown masked. */
  readonly token: string | undefined;
}

/** A session that is closed or being closed. */
export interface ClosedSession {
  readonly session: PaymentSessionRow;
  /** Hashes of the final transactions that moved some of its deposit, oldest first. */
  readonly transactions: readonly string[];
}

/** 401: the wallet has not signed yet. */
export class AuthorizationRequiredError extends ServiceError {
  override readonly name = 'AuthorizationRequiredError';

  constructor(typedData: object, message = 'Wallet authorization required') {
    super(401, message, 'AUTHORIZATION_REQUIRED', { typedData });
  }
}

/** 503: the session is still being opened; a later retry finds it. */
export class StillOpeningError extends ServiceError {
  override readonly name = 'StillOpeningError';

  constructor() {
    super(503, 'The session is still being opened: retry later', undefined, {
      retryAfter: RETRY_AFTER_S,
    });
  }
}

interface Parts {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly node: Chain;
  /** Undefined if no escrow is configured. */
  readonly escrow: Escrow | undefined;
  readonly payments: Pick<ChainPayments, 'request'>;
  readonly gas: GasBudget;
  readonly watch: Pick<SessionWatch, 'left'>;
  readonly log: Logger;
  /** Milliseconds that a request waits for a session to open; 20 seconds by default. */
  readonly openingMs?: number;
  /** Milliseconds that a request waits for a session to close; 30 seconds by default. */
  readonly closingMs?: number;
}

/** Payment sessions for wallets: inserting the row starts the opening. */
export class PaymentSessions {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Opens a session, or returns the wallet's open session.
   *
   * @throws AuthorizationRequiredError; PaymentRequiredError `ESCROW_INSUFFICIENT`; StillOpeningError;
   *   UnavailableError if none can be opened or no gas is left; TooManyRequestsError; ChainAwayError.
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
    const caller: NodeCaller = { owner: by.owner, isUrgent: true };
    const node = this.#parts.node.onBehalfOf(caller);
    const isKept = await this.#isKept(by, wanted.address);
    const isOwner = isKept || (await this.isOwner(by.userId, wanted.address));
    let signed = isKept ? undefined : await this.#signedOf(node, escrow, wanted);
    if (!signed && !isOwner) throw this.#unauthorized(escrow, wanted);
    // A session that fails to open makes room for a new session.
    while (!waits.aborted) {
      const existing = await this.#findOpen(escrow, wanted.address);
      if (existing) {
        const session = await this.#opened(existing.id, waits);
        if (!session) continue;
        const shows =
          isOwner || (signed && (await this.#isFirst(node, escrow, wanted.address, signed)));
        return { session, token: shows ? this.tokenOf(session) : undefined, isNew: false };
      }
      if (!isKept && !signed) throw this.#unauthorized(escrow, wanted);
      const [hasCode, available, isPublished] = await Promise.all([
        node.hasCode(wanted.address),
        this.#availableOf(escrow, wanted.address, caller),
        signed && !isOwner && this.#isPublished(node, escrow, wanted.address, signed),
      ]);
      if (isPublished) throw this.#unauthorized(escrow, wanted);
      if (hasCode) {
        // For a wallet with code, the escrow ignores the key that the platform stores.
        signed ??= await this.#signedOf(node, escrow, wanted);
        await this.#requireAccepted(escrow, wanted, signed);
      }
      if (signed && !hasTimeLeft(signed.deadline)) {
        const message = 'The authorization ends too soon: sign one that is valid for five minutes';
        throw this.#unauthorized(escrow, wanted, message);
      }
      await this.#refuseAfterFailures(by, wanted, hasCode);
      requireCover(escrow, wanted, available);
      const made = await this.#insert(by, escrow, wanted, signed);
      if (made === 'another') continue;
      if (made === 'used') throw this.#unauthorized(escrow, wanted);
      const session = await this.#opened(made.id, waits);
      if (session) return { session, token: made.token, isNew: true };
      requireCover(escrow, wanted, await this.#availableOf(escrow, wanted.address, caller));
      throw new UnavailableError(
        'The session could not be opened: sign a new authorization and retry',
      );
    }
    throw new StillOpeningError();
  }

  /**
   * Closes a session: stops debits, settles the delivered amount and returns the rest to the wallet. The
   * id alone authorizes the caller; repeated calls return the same result.
   *
   * @returns the session once it is closed, or in its current state when the wait has ended.
   */
  async close({ id }: Pick<PaymentSessionRow, 'id'>, signal: AbortSignal): Promise<ClosedSession> {
    await beginClosing(this.#platform, id);
    const waits = AbortSignal.any([
      signal,
      AbortSignal.timeout(this.#parts.closingMs ?? CLOSING_MS),
    ]);
    const session = await this.#parts.watch.left('settling', id, waits);
    if (!session) throw new NotFoundError('Session not found');
    return { session, transactions: await settledBy(this.#platform, id) };
  }

  /** Lists the sessions that a wallet has opened, newest first; one page. */
  async list(address: Hex): Promise<PaymentSessionRow[]> {
    return this.#platform.query<PaymentSessionRow>(
      `${selectFrom(paymentSessions)} WHERE address = $address AND opened_at IS NOT NULL
        ORDER BY created_at DESC, id DESC LIMIT ${PAGE}`,
      { address },
    );
  }

  /** Reports whether the user has linked the wallet by proof of ownership. */
  async isOwner(userId: string | undefined, address: Hex): Promise<boolean> {
    if (userId === undefined) return false;
    return (await ownWallets(this.#platform, userId)).includes(address);
  }

  /** Decrypts the id of a session; only its owner may see it. */
  tokenOf({ id, sealedToken }: Pick<PaymentSessionRow, 'id' | 'sealedToken'>): string {
    return this.#parts.secrets.open(sealedToken, sessionTokenContext(id));
  }

  get #platform() {
    return this.#parts.database.asPlatform();
  }

  /** Reports whether the platform stores the wallet's key for this user. */
  async #isKept({ userId }: Pick<Opener, 'userId'>, address: Hex): Promise<boolean> {
    if (userId === undefined) return false;
    const [kept] = await this.#platform.query(
      `SELECT FROM wallets WHERE user_id = $userId AND address = $address
          AND kind IN ('user', 'imported') AND sealed_key IS NOT NULL AND suspended_at IS NULL
        LIMIT 1`,
      { userId, address },
    );
    return kept !== undefined;
  }

  /** Returns the verified authorization; undefined if it is missing, invalid or out of time. */
  async #signedOf(
    node: ChainNode,
    escrow: Escrow,
    wanted: WantedSession,
  ): Promise<Signed | undefined> {
    const { authorization } = wanted;
    if (!authorization || !isInTime(authorization.deadline)) return undefined;
    const hold = holdOf(wanted, authorization);
    const { signature } = authorization;
    const word = new HoldSignature(domainOf(escrow), hold, signature, node);
    return (await word.isOfWallet()) ? { ...authorization, word } : undefined;
  }

  /**
   * Reports whether this is the first use of an authorization, and marks it as used. An authorization
   * that opened a session is public on the chain.
   */
  async #isFirst(
    node: ChainNode,
    escrow: Escrow,
    address: Hex,
    signed: Authorization,
  ): Promise<boolean> {
    const [published] = await this.#platform.query(
      `SELECT FROM payment_sessions
        WHERE chain_id = $chainId AND escrow = $escrow AND address = $address AND nonce = $nonce`,
      { chainId: escrow.chainId, escrow: escrow.terms.escrow, address, nonce: signed.nonce },
    );
    if (published || (await this.#isPublished(node, escrow, address, signed))) return false;
    return this.#useUp(escrow, address, signed);
  }

  /**
   * Reports whether an authorization is public on the chain. The database may not contain it after a
   * restore. @throws ChainAwayError
   */
  async #isPublished(
    node: ChainNode,
    { terms }: Escrow,
    payer: Hex,
    { nonce }: Pick<Authorization, 'nonce'>,
  ): Promise<boolean> {
    const id = holdIdOf({ payer, nonce });
    return (await readHold(node, terms.escrow, id)) !== undefined;
  }

  /** Marks an authorization as used; returns false if it was used before. */
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

  /** Waits until the session is open; undefined if it failed to open. @throws StillOpeningError */
  async #opened(id: string, signal: AbortSignal): Promise<PaymentSessionRow | undefined> {
    const session = await this.#parts.watch.left('opening', id, signal);
    if (!session || session.state === 'opening') throw new StillOpeningError();
    return session.state === 'failed' ? undefined : session;
  }

  /**
   * Requires that the wallet's code accepts the signature: the escrow calls the code even if the key has
   * signed (EIP-7702). Its behaviour and gas use in the real transaction cannot be predicted.
   *
   * @throws AuthorizationRequiredError, ChainAwayError
   */
  async #requireAccepted(
    escrow: Escrow,
    wanted: WantedSession,
    signed: Signed | undefined,
  ): Promise<void> {
    if (!(await signed?.word.isValidForContract())) {
      const message =
        'The wallet has code, so the escrow verifies the signature by that code, not by its key (ERC-1271)';
      throw this.#unauthorized(escrow, wanted, message);
    }
  }

  /** Refuses an opening after failed ones of the wallet or the client. @throws TooManyRequestsError */
  async #refuseAfterFailures(
    { client }: Opener,
    { address: wallet }: WantedSession,
    hasCode: boolean,
  ): Promise<void> {
    const limit = await failuresLimit(this.#platform, { wallet, client, hasCode });
    if (!limit) return;
    throw new TooManyRequestsError(
      'Recent openings were refused or reverted on chain: retry later',
      limit,
    );
  }

  /** Returns the payer's available balance. @throws UnavailableError, ChainAwayError */
  async #availableOf(escrow: Escrow, address: Hex, caller: NodeCaller): Promise<bigint> {
    try {
      return await escrow.available(address, caller);
    } catch (error) {
      if (!(error instanceof WrongEscrowError)) throw error;
      this.#parts.log.error({ err: error }, 'no payment session can be opened');
      throw new UnavailableError('Payment sessions are not available: retry later', {
        cause: error,
      });
    }
  }

  /**
   * Inserts a session; `another`: the wallet has an open session; `used`: the authorization was used
   * before. @throws TooManyRequestsError, GasSpentError
   */
  async #insert(
    { client, requestId, userId }: Opener,
    escrow: Escrow,
    wanted: WantedSession,
    signed: Authorization | undefined,
  ): Promise<{ readonly id: string; readonly token: string } | 'another' | 'used'> {
    const { database, gas, payments, secrets } = this.#parts;
    const { address, deposit } = wanted;
    const token = newSessionToken();
    const id = randomUUID();
    const { deadline, nonce } = signed ?? { nonce: newNonce(), deadline: latestDeadline() };
    const row = {
      id,
      ...storedOf(token),
      address,
      nonce,
      escrow: escrow.terms.escrow,
      userId: signed ? null : (userId ?? null),
      sealedToken: secrets.seal(token, sessionTokenContext(id)),
      chainId: String(escrow.chainId),
      holdId: holdIdOf({ payer: address, nonce }),
      authorizationDeadline: dateOf(deadline),
      deposit: String(deposit),
    };
    try {
      // The statements are sent together, in this order.
      await gas.notifying(() =>
        database.asPlatform().statements(async (db) => {
          const [, isFirst] = await Promise.all([
            db.query(INSERT, row),
            signed && this.#useUp(escrow, address, signed, db),
            signed && requestHold(db, payments, escrow.terms.operator, row, signed.signature),
            userId !== undefined &&
              recordAudit(db, {
                actor: userId,
                userId,
                requestId,
                action: 'payment-session.open',
                subject: id,
                detail: { address, deposit: String(deposit) },
              }),
          ]);
          if (isFirst === false) throw new UsedError();
          await gas.reserve(db, {
            cause: openingCause(id),
            gas: ESCROW_GAS,
            userId,
            opening: { wallet: address, client },
          });
        }),
      );
      return { id, token };
    } catch (error) {
      if (error instanceof UsedError) return 'used';
      if (violates(error, 'payment_sessions_open')) return 'another';
      if (!violates(error, 'payment_sessions_authorization')) throw error;
      // The authorization belongs to a session that is over, unless one is open now.
      return (await this.#findOpen(escrow, address)) ? 'another' : 'used';
    }
  }

  #unauthorized(escrow: Escrow, wanted: WantedSession, error?: string): AuthorizationRequiredError {
    const fresh = { nonce: newNonce(), deadline: latestDeadline() };
    const { domain, message, ...typedData } = holdTypedData(
      domainOf(escrow),
      holdOf(wanted, fresh),
    );
    const asJson = {
      ...typedData,
      domain: { ...domain, verifyingContract: shownAddress(domain.verifyingContract) },
      // JSON numbers cannot hold values of this size.
      message: {
        ...message,
        payer: shownAddress(message.payer),
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
    'Insufficient escrow balance: deposit more and retry',
    'ESCROW_INSUFFICIENT',
    {
      available: formatAmount(available),
      required: formatAmount(deposit),
      escrow: shownAddress(escrow),
      token: shownAddress(PATH_USD),
      chainId,
    },
  );
}

/** Rolls back the insertion of a session whose authorization was used before. */
class UsedError extends Error {
  override readonly name = 'UsedError';
}

const domainOf = ({ chainId, terms }: Escrow) => ({ chainId, escrow: terms.escrow });

const holdOf = (
  { address, deposit }: WantedSession,
  { deadline, nonce }: Pick<Authorization, 'nonce' | 'deadline'>,
): Hold => ({ payer: address, amount: deposit, nonce, deadline });

const dateOf = (seconds: bigint) => new Date(Number(seconds) * 1_000);
