import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import * as z from 'zod';
import { escrowAbi } from '../../src/money/chain/payment-escrow.js';
import { parseAmount } from '../../src/types/money.js';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';
import type { Payer } from './payer.js';
import { send, type TourRequest, type Terminal, type Answer } from './terminal.js';

const SESSIONS = '/api/wallet/sessions';
const GATEWAY = '/api/v1/gateway';

/** Number of purchases shown in full, and of further purchases for each progress line. */
const SHOWN = 3;
const PROGRESS = 100;

/** Number of loopback addresses, each of which counts as a client: a client may send 100 requests a minute. */
const CLIENTS = 15;

/**
 * Maximum number of failed purchases (for example on an overloaded machine), and the pause after each in
 * milliseconds.
 */
const MOST_FAILED = 10;
const FAILED_MS = 1_000;

/**
 * Maximum number of requests to open a session, and seconds between them: each waits for a while, and is then answered
 * with a request to retry.
 */
const OPENING_TRIES = 10;
const OPENING_S = 5;

/** Default pause in seconds, if a rate limited answer has no `Retry-After`. */
const FULL_S = 60;

const hex = z.templateLiteral(['0x', z.string()]);
const offer = z.object({
  payment: z.object({ escrow: hex, token: hex, minDeposit: z.string() }),
});
const digits = z.string().regex(/^\d+$/);
const unsigned = z.object({
  typedData: z.object({
    domain: z.object({ chainId: z.number(), verifyingContract: hex }),
    message: z.object({ payer: hex, amount: digits, nonce: hex, deadline: digits }),
  }),
});
const opened = z.object({ session: z.object({ id: z.string() }) });
const closed = z.object({
  session: z.object({ status: z.string() }),
  transactions: z.array(hex),
});

/** A person without an account of the platform, whose wallet pays for each request. */
export class SessionTour {
  readonly #webUrl: string;
  readonly #payer: Payer;
  readonly #terminal: Terminal;

  constructor(webUrl: string, payer: Payer, terminal: Terminal) {
    this.#webUrl = webUrl;
    this.#payer = payer;
    this.#terminal = terminal;
  }

  /** Opens a session, spends its whole deposit, and closes it. @throws StartFailure */
  async go(): Promise<void> {
    const { deposit, deposited } = await this.#deposit();
    const sessionId = await this.#open(deposit);
    await this.#spend(sessionId, deposited);
    await this.#close(sessionId);
  }

  /** Deposits the minimum in the escrow, and returns the amount and the transaction. */
  async #deposit(): Promise<{ deposit: string; deposited: Hex }> {
    this.#terminal.heading('Read the price and deposit money in the escrow');
    const { body } = await this.#terminal.ask(this.#request('GET', GATEWAY));
    const { escrow, minDeposit, token } = offer.parse(body).payment;
    const amount = parseAmount(minDeposit);
    if (amount === undefined) throw new StartFailure(`${minDeposit} is not an amount.`);
    const { hash } = await this.#payer.send([
      {
        to: token,
        data: encodeFunctionData({
          abi: erc20Abi,
          functionName: 'approve',
          args: [escrow, amount],
        }),
        value: 0n,
      },
      {
        to: escrow,
        data: encodeFunctionData({ abi: escrowAbi, functionName: 'deposit', args: [amount] }),
        value: 0n,
      },
    ]);
    return { deposit: minDeposit, deposited: hash };
  }

  /** Opens a session, and returns the id with which purchases debit it. */
  async #open(deposit: string): Promise<string> {
    const terminal = this.#terminal;
    terminal.heading(
      'Open a payment session: the wallet signs the message and repeats the request',
    );
    const wanted = { address: this.#payer.address, deposit };
    const { body } = await this.#ask(wanted);
    const { id } = opened.parse(body).session;
    say(`\nSESSION='${id}'`);
    terminal.hide('SESSION', id);
    return id;
  }

  /**
   * Sends the wallet's signature with the request; signs again if opening takes longer than a request
   * waits.
   */
  async #ask(wanted: { readonly address: Hex; readonly deposit: string }): Promise<Answer> {
    const terminal = this.#terminal;
    for (let tries = 1; ; tries += 1) {
      const offered = await terminal.askAnyway(this.#request('POST', SESSIONS, wanted));
      const asked = unsigned.safeParse(offered.body);
      if (!asked.success) {
        throw new StartFailure('The tour ends here: the answer has no message to sign.');
      }
      const { domain, message } = asked.data.typedData;
      const { deadline, nonce } = message;
      const signature = await this.#payer.sign(
        { chainId: domain.chainId, escrow: domain.verifyingContract },
        { ...message, amount: BigInt(message.amount), deadline: BigInt(deadline) },
      );
      const authorization = { nonce, deadline, signature };
      const request = this.#request('POST', SESSIONS, { ...wanted, authorization });
      if (tries === OPENING_TRIES) return terminal.ask(request);
      const answer = await terminal.askAnyway(request);
      if (answer.status < 300) return answer;
      if (answer.status !== 503) {
        throw new StartFailure('The tour ends here: no session was opened.');
      }
      await delay(secondsOf(answer, OPENING_S) * 1_000);
    }
  }

  /** Buys until the session's deposit is spent. */
  async #spend(sessionId: string, hash: Hex): Promise<void> {
    const terminal = this.#terminal;
    terminal.heading('Buy the list of transfers of the deposit until the session is empty');
    const order = { plugin: 'chain', action: 'transfers', input: { hash } };
    const headers = { 'x-session-id': sessionId, 'x-wallet-address': this.#payer.address };
    const purchase = { ...this.#request('POST', GATEWAY, order), headers };
    const clients = this.#clients();
    let bought = 0;
    let failed = 0;
    for (;;) {
      const from = clients[0];
      const asked: TourRequest = { ...purchase, ...(from !== undefined && { from }) };
      const answer = bought < SHOWN ? await terminal.askAnyway(asked) : await send(asked);
      if (answer.status === 200) {
        bought += 1;
        if (bought === SHOWN) say('\nmore purchases follow; only the last answer is shown');
        if (bought % PROGRESS === 0) say(`${bought} bought, ${leftOf(answer)} pathUSD left`);
      } else if (answer.status === 429) {
        await this.#switchClient(clients, answer);
      } else if (answer.status >= 500 && failed < MOST_FAILED) {
        failed += 1;
        say('the purchase failed and costs nothing: retrying');
        await delay(FAILED_MS);
      } else {
        if (bought >= SHOWN) terminal.show(asked, answer);
        if (answer.status === 402) return;
        throw new StartFailure('The tour ends here: the purchase was rejected.');
      }
    }
  }

  /**
   * Switches to another client address, since a rate limited one must pause for a minute; waits if none
   * is left.
   */
  async #switchClient(clients: (string | undefined)[], answer: Answer): Promise<void> {
    if (clients.length > 1) {
      clients.shift();
      say(`rate limit of 100 a minute reached: continuing as ${clients[0]}`);
      return;
    }
    const seconds = secondsOf(answer, FULL_S);
    say(`rate limit of 100 a minute reached: continuing in ${seconds} s`);
    await delay(seconds * 1_000);
  }

  /** Returns the source addresses for requests; undefined for the system's default address. */
  #clients(): (string | undefined)[] {
    const { hostname } = new URL(this.#webUrl);
    // Other systems need configuration to use more than the first address of the loopback network.
    if (process.platform !== 'linux' || !hostname.startsWith('127.')) return [undefined];
    return Array.from({ length: CLIENTS }, (_, index) => `127.0.0.${index + 1}`);
  }

  async #close(sessionId: string): Promise<void> {
    const terminal = this.#terminal;
    terminal.heading('Close the session: the treasury receives the price of the purchases');
    const { body } = await terminal.until(
      this.#request('DELETE', `${SESSIONS}?sessionId=${sessionId}`),
      (found) => closed.parse(found).session.status === 'closed',
    );
    for (const hash of closed.parse(body).transactions)
      say(`transaction ${hash} settled the session`);
  }

  /** Builds a request without a cookie: none is needed. */
  #request(method: TourRequest['method'], path: string, body?: unknown): TourRequest {
    return { method, url: `${this.#webUrl}${path}`, body };
  }
}

/** Seconds to wait before a retry. */
const secondsOf = ({ headers }: Answer, byDefault: number): number =>
  Number(headers['retry-after']) || byDefault;

const leftOf = ({ headers }: Answer): string => String(headers['x-session-remaining']);
