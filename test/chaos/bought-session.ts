import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { poll } from '../../dev/poll.js';
import { escrowAbi } from '../../src/money/chain/payment-escrow.js';
import type { Database } from '../../src/platform/database/database.js';
import { balanceOf } from '../../src/money/ledger/ledger.js';
import { formatAmount, ONE } from '../../src/types/money.js';
import { sessionAccount, spentAccount } from '../../src/money/sessions/causes.js';
import type { CarefulClient } from './careful-client.js';
import type { ChaosChain } from './chaos-chain.js';
import type { MoneyPlan } from './money-plan.js';

const SESSIONS = '/api/wallet/sessions';
const GATEWAY = '/api/v1/gateway';

const DEPOSIT = ONE;

/** The price of the plugin action `chain` `transfers`. */
const PRICE = 1_000n;

/** Time limit for a session to open or a purchase to finish. */
const TIMEOUT_MS = 180_000;
const PAUSE_MS = 250;

/** The services that a session uses and the check reads. */
export interface SessionSite {
  /** The web API, called by a wallet that has no browser session. */
  readonly web: CarefulClient;
  readonly chain: ChaosChain;
  readonly database: Database;
  /** A transaction that the chain keeps through every fault. */
  readonly known: Hex;
}

interface SessionRow {
  readonly id: string;
  readonly state: string;
  readonly escrow: Hex;
  readonly holdId: Hex;
  readonly deposit: string;
  readonly delivered: string;
  readonly settled: string;
  readonly vouchers: number;
  readonly vouched: string;
  readonly last: string;
}

/**
 * Deposits in the escrow the amount that so many sessions need.
 * @returns the transaction.
 */
export function depositFor(chain: ChaosChain, sessions: number): Promise<Hex> {
  const { escrow, token } = chain.local;
  const amount = BigInt(sessions) * DEPOSIT;
  const approve = { abi: erc20Abi, functionName: 'approve', args: [escrow, amount] } as const;
  const deposit = { abi: escrowAbi, functionName: 'deposit', args: [amount] } as const;
  return chain.pay([
    { to: token.address, data: encodeFunctionData(approve), value: 0n },
    { to: escrow, data: encodeFunctionData(deposit), value: 0n },
  ]);
}

/** A payment session of one round: opened, used for purchases and closed during a fault. */
export class BoughtSession {
  readonly #site: SessionSite;
  readonly #plan: MoneyPlan['session'];
  readonly #key: () => string;
  #token: string | undefined;
  /** Purchases whose success was reported to the client. */
  #served = 0;

  constructor(site: SessionSite, plan: MoneyPlan['session'], key: () => string) {
    this.#site = site;
    this.#plan = plan;
    this.#key = key;
  }

  /** Opens the session, buys, and closes it on time; purchases still open then are refused. */
  async go(): Promise<void> {
    const { afterMs, closeAfterMs, purchases } = this.#plan;
    await delay(afterMs);
    const token = await this.#open();
    const buying = Array.from({ length: purchases }, () => this.#buy(token));
    await Promise.race([Promise.all(buying), delay(closeAfterMs)]);
    await Promise.all([...buying, this.#close(token)]);
  }

  /** Returns the session's problems; requests its closing again while it is still active. */
  async problems(): Promise<string[]> {
    if (this.#token === undefined) return ['no session was opened'];
    const row = await this.#row();
    if (!row) return ['the session is not there'];
    const { delivered, deposit, escrow, holdId, id, settled, state, vouched, vouchers } = row;
    if (state !== 'closed') {
      if (state === 'active') await this.#close(this.#token);
      return [`the session is ${state}`];
    }
    const { chain, database } = this.#site;
    const platform = database.asPlatform();
    const found: string[] = [];
    const expect = (what: string, is: unknown, wanted: unknown) => {
      if (is !== wanted) found.push(`${what} of the session: ${String(is)}, not ${String(wanted)}`);
    };
    expect('the vouched amount', vouched, delivered);
    expect('the last voucher', row.last, delivered);
    expect('the delivered amount', BigInt(delivered), BigInt(vouchers) * PRICE);
    expect('the settled amount', settled, delivered);
    if (vouchers < this.#served || vouchers > this.#plan.purchases) {
      found.push(`the session has ${vouchers} vouchers, but ${this.#served} purchases succeeded`);
    }
    const hold = await chain.holdOf(escrow, holdId);
    expect('the held amount', hold?.amount, BigInt(deposit));
    expect('the amount settled on the chain', hold?.settled, BigInt(delivered));
    expect('the end on the chain', hold?.closed, true);
    for (const account of [sessionAccount(id), spentAccount(id)]) {
      expect(account, (await balanceOf(platform, account, 'pathusd')).balance, 0n);
    }
    const [refund] = await platform.query<{ amount: string }>(
      `SELECT amount::text FROM ledger_transfers WHERE cause = $cause`,
      { cause: `session-refund:${id}` },
    );
    expect('the refunded amount', refund?.amount, String(BigInt(deposit) - BigInt(delivered)));
    return found;
  }

  /** Retries until the session's id is returned; each attempt needs a new signature. */
  async #open(): Promise<string> {
    const { chain, web } = this.#site;
    let reported = '';
    const token = await poll(
      async () => {
        const { hold, signature } = chain.sign(DEPOSIT);
        const { deadline, nonce } = hold;
        const { status, text } = await web.once('POST', SESSIONS, this.#key(), {
          address: hold.payer,
          deposit: formatAmount(DEPOSIT),
          authorization: { nonce, deadline: Number(deadline), signature: await signature },
        });
        reported = `${status} ${text}`;
        return status === 200 || status === 201
          ? /"id":"(ses_[\w-]{43})"/.exec(text)?.[1]
          : undefined;
      },
      { timeoutMs: TIMEOUT_MS, everyMs: PAUSE_MS },
    );
    if (token === undefined) throw new Error(`no session opened: ${reported}`);
    this.#token = token;
    return token;
  }

  /** Buys once, however often it retries; gives up if the session is closed. */
  async #buy(token: string): Promise<void> {
    const { chain, known, web } = this.#site;
    const order = { plugin: 'chain', action: 'transfers', input: { hash: known } };
    const headers = { 'x-session-id': token, 'x-wallet-address': chain.payer };
    const key = this.#key();
    let reported = '';
    const isOver = await poll(
      async () => {
        const { status, text } = await web.once('POST', GATEWAY, key, order, headers);
        reported = `${status} ${text}`;
        if (status === 200) this.#served += 1;
        return status === 200 || (status === 402 && text.includes('SESSION_CLOSED')) || undefined;
      },
      { timeoutMs: TIMEOUT_MS, everyMs: PAUSE_MS },
    );
    if (!isOver) throw new Error(`the purchase did not finish: ${reported}`);
  }

  /** Ignores the answer: the session's state is checked later. */
  async #close(token: string): Promise<void> {
    await this.#site.web.once('DELETE', `${SESSIONS}?sessionId=${token}`, this.#key());
  }

  /** Returns the wallet's newest session; a wallet has one at a time. */
  async #row(): Promise<SessionRow | undefined> {
    const [row] = await this.#site.database.asPlatform().query<SessionRow>(
      `SELECT s.id, s.state, s.escrow, s.hold_id AS "holdId", s.deposit, s.delivered, s.settled,
              (SELECT count(*)::int FROM payment_vouchers v WHERE v.session_id = s.id) AS vouchers,
              (SELECT coalesce(sum(v.amount), 0)::text FROM payment_vouchers v
                WHERE v.session_id = s.id) AS vouched,
              (SELECT coalesce(max(v.cumulative), 0)::text FROM payment_vouchers v
                WHERE v.session_id = s.id) AS last
         FROM payment_sessions s WHERE s.address = $address AND s.opened_at IS NOT NULL
        ORDER BY s.created_at DESC LIMIT 1`,
      { address: this.#site.chain.payer.toLowerCase() },
    );
    return row;
  }
}
