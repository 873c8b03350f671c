import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, erc20Abi, keccak256, toHex, type Hex } from 'viem';
import { poll } from '../../dev/poll.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { balanceOf } from '../../src/money/ledger/ledger.js';
import { WHOLE_SHARE, allocateByShares, formatAmount, ONE } from '../../src/types/money.js';
import { BoughtCredits, type Buyer, type CreditSite } from './bought-credits.js';
import { BoughtPlan } from './bought-plan.js';
import { BoughtSession, type SessionSite } from './bought-session.js';
import type { CarefulClient } from './careful-client.js';
import { KillAtStep } from './kill-at-step.js';
import { killProcess } from './kills.js';
import { MONEY_PARTS, type MoneyPart, type MoneyPlan } from './money-plan.js';
import { pauseProcess } from './pauses.js';
import { SentMessages, type MessageSite } from './sent-messages.js';

/** Time limit for all to finish: a dead worker's signing run is noticed after half a minute. */
const SETTLE_MS = 180_000;

/** The price of a clone. */
const CLONE_PRICE = ONE;

/** The platform under test and the clients that check it. */
export interface MoneySite extends SessionSite, CreditSite, MessageSite {
  /** Part of the idempotency keys. */
  readonly run: string;
  readonly api: CarefulClient;
  /** The agent to clone, whose wallet pays. */
  readonly parentId: string;
  readonly wallets: readonly [Wallet, Wallet];
  /** Registers a user and signs in. */
  buyer(): Promise<Buyer>;
  /** Returns the process id of a part; undefined while it is dead. */
  livingPidOf(part: MoneyPart): Promise<number | undefined>;
}

/** A wallet that the platform keeps for an agent. */
export interface Wallet {
  readonly agentId: string;
  readonly address: Hex;
}

export interface MoneyResult {
  readonly plan: MoneyPlan;
  /** Failures that were reported correctly and retried. */
  readonly reported: readonly string[];
  /** Problems found; empty if all is well. */
  readonly problems: readonly string[];
  readonly seconds: number;
}

interface AskedSplit {
  readonly id: number;
  readonly recipients: readonly { readonly address: Hex; readonly amount: bigint }[];
}

interface SplitAnswer {
  readonly status: string;
  readonly error?: string;
  readonly payouts: readonly { readonly status: string; readonly transaction: Hex | null }[];
}

type SplitOfWallet = Pick<MoneyPlan['splits'][number], 'recipients' | 'wallet'>;

/** Runs a round: pays and receives payments during a fault. */
export async function runMoneyRound(site: MoneySite, plan: MoneyPlan): Promise<MoneyResult> {
  const begun = performance.now();
  const round = new MoneyRound(site, plan);
  let problems: readonly string[];
  try {
    await round.prepare();
    await round.hurt();
    problems = await round.settle();
    await round.clear();
  } catch (error) {
    problems = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
  const seconds = Math.round((performance.now() - begun) / 1_000);
  return { plan, reported: round.reported, problems, seconds };
}

class MoneyRound {
  readonly reported: string[] = [];
  readonly #site: MoneySite;
  readonly #plan: MoneyPlan;
  readonly #splits: AskedSplit[] = [];
  readonly #session: BoughtSession;
  readonly #kill: KillAtStep;
  readonly #messages: SentMessages;
  #credits: BoughtCredits | undefined;
  #subscription: BoughtPlan | undefined;
  #clone: { readonly id: string; readonly request: object } | undefined;
  #asked = 0;

  constructor(site: MoneySite, plan: MoneyPlan) {
    this.#site = site;
    this.#plan = plan;
    this.#session = new BoughtSession(site, plan.session, this.#key);
    const part = plan.kill?.part ?? 'api';
    this.#kill = new KillAtStep(plan.kill, () => killProcess(part, () => site.livingPidOf(part)));
    const own = { kill: this.#kill, key: this.#key };
    this.#messages = new SentMessages(site, plan.messages, own);
  }

  /** Pays the wallets now: both older payments and these may be lost with the node's newer state. */
  async prepare(): Promise<void> {
    const { chain, wallets } = this.#site;
    const own = { buyer: await this.#site.buyer(), kill: this.#kill, key: this.#key };
    this.#credits = new BoughtCredits(this.#site, this.#plan.credits, own);
    this.#subscription = new BoughtPlan(this.#site, this.#plan.subscription, own);
    await chain.keep();
    const usdc = chain.local.usdc.address;
    const needed = wallets.map(({ address }, index) => {
      const mine = [...this.#plan.splits, ...this.#splitsAfter()].filter(
        ({ wallet }) => wallet === index,
      );
      return transfer(usdc, address, BigInt(mine.length) * ONE);
    });
    await chain.pay(needed);
  }

  /** Pays while the fault happens. */
  async hurt(): Promise<void> {
    const { cloneAfterMs, faultAfterMs, splits } = this.#plan;
    const fault = this.#plan.kill === undefined && delay(faultAfterMs).then(() => this.#fault());
    const asking = [
      this.#session.go(),
      this.#credits?.go(),
      this.#subscription?.go(),
      this.#messages.go(),
      ...splits.map(async (split, index) => {
        await delay(split.afterMs);
        await this.#askSplit(split, index);
      }),
      ...(cloneAfterMs === undefined ? [] : [delay(cloneAfterMs).then(() => this.#askClone())]),
    ];
    await Promise.all([fault, ...asking]);
    await this.#kill.ended();
    const { length } = splits;
    await Promise.all(
      this.#splitsAfter().map((split, index) => this.#askSplit(split, length + index)),
    );
  }

  /**
   * Waits until all is well.
   * @returns the problems left when the time is over.
   */
  async settle(): Promise<readonly string[]> {
    let problems: readonly string[] = [];
    await poll(
      async () => {
        try {
          await this.#site.chain.sendAgain();
          problems = await this.#problems();
        } catch (error) {
          problems = [`it cannot be seen: ${String(error)}`]; // the killed part is restarting
        }
        return problems.length === 0 || undefined;
      },
      { timeoutMs: SETTLE_MS, everyMs: 250 },
    );
    return problems;
  }

  async clear(): Promise<void> {
    if (!this.#clone) return;
    await this.#site.api.ask('DELETE', `/api/agents/${this.#clone.id}`, this.#key());
  }

  /** Returns splits after the fault: a wallet's next payment repeats those that an older node has lost. */
  #splitsAfter(): readonly SplitOfWallet[] {
    if (this.#plan.fault !== 'older node') return [];
    return ([0, 1] as const).map((wallet) => ({ recipients: 1, wallet }));
  }

  async #askSplit({ recipients, wallet }: SplitOfWallet, index: number) {
    const { api, wallets } = this.#site;
    const { address: fromAddress, agentId } = wallets[wallet];
    const share = WHOLE_SHARE / BigInt(recipients);
    const shares = Array.from({ length: recipients }, (_, n) =>
      n === 0 ? WHOLE_SHARE - share * BigInt(recipients - 1) : share,
    );
    const amounts = allocateByShares(ONE, shares);
    const paid = shares.map((each, n) => ({
      address: keccak256(toHex(`${this.#plan.seed} ${index} ${n}`)).slice(0, 42) as Hex,
      share: Number(each) / 10_000,
      amount: amounts[n] ?? 0n,
    }));
    const body = {
      userId: 'operator',
      agentId,
      fromAddress,
      name: `round ${this.#plan.seed}`,
      totalAmount: formatAmount(ONE),
      recipients: paid.map(({ address, share: percent }) => ({ address, share: percent })),
    };
    const path = '/api/underground/splits';
    const { splitId } = await api.ask<{ splitId: number }>('POST', path, this.#key(), body);
    this.#splits.push({ id: splitId, recipients: paid });
  }

  async #askClone(): Promise<void> {
    const { chain, parentId } = this.#site;
    const { chainId, token, treasury } = chain.local;
    const transactionHash = await chain.pay([transfer(token.address, treasury, CLONE_PRICE)]);
    const timestamp = await poll(
      async () => {
        await this.#rebroadcast();
        return (await chain.blockOf(transactionHash).catch(() => undefined))?.timestamp;
      },
      { timeoutMs: SETTLE_MS },
    );
    const request = {
      parentAgentId: parentId,
      name: `clone ${this.#plan.seed}`,
      specialization: 'general',
      generation: 1,
      paymentProof: {
        transactionHash,
        amount: formatAmount(CLONE_PRICE),
        currency: 'pathUSD',
        chainId,
        from: chain.payer,
        to: treasury,
        timestamp,
      },
    };
    const id = await poll(() => this.#requestClone(request), {
      timeoutMs: SETTLE_MS,
      everyMs: 250,
    });
    if (id === undefined) throw new Error('the clone was not accepted in time');
    this.#clone = { id, request };
  }

  /** Rebroadcasts what a reorganisation has dropped, as the payer's wallet does; a failure is retried. */
  #rebroadcast = (): Promise<void> => this.#site.chain.sendAgain().catch(() => undefined);

  /**
   * Requests the clone once.
   * @returns undefined while the chain does not have its payment.
   */
  async #requestClone(request: object): Promise<string | undefined> {
    const path = '/api/agents/clone';
    try {
      const asked = this.#site.api.ask<{ clone: { id: string } }>(
        'POST',
        path,
        this.#key(),
        request,
      );
      return (await asked).clone.id;
    } catch (error) {
      if (!String(error).includes('PAYMENT_NOT_FOUND')) throw error;
      await this.#rebroadcast();
      return undefined;
    }
  }

  async #fault(): Promise<void> {
    const { chain, livingPidOf } = this.#site;
    const { fault, lastsMs } = this.#plan;
    const part = MONEY_PARTS.find((each) => fault.startsWith(`${each} `));
    const whileItLasts = async (fate: 'deaf' | 'lost', methods: RegExp) => {
      chain.proxy.fate = (method) => (methods.test(method) ? fate : undefined);
      await delay(lastsMs);
      chain.mend();
    };
    switch (fault) {
      case 'deaf broadcasts':
        return whileItLasts('deaf', /^eth_sendRawTransaction$/);
      case 'lost broadcasts':
        return whileItLasts('lost', /^eth_sendRawTransaction$/);
      case 'chain away':
        return whileItLasts('lost', /./);
      case 'low fees':
        await chain.hold();
        await delay(lastsMs);
        return chain.letGo();
      case 'older node':
        return chain.goBack();
      case 'reorganised':
        return chain.reorganise();
      default:
    }
    if (!part) throw new TypeError(`Unknown fault: ${fault}`);
    const living = () => livingPidOf(part);
    return fault.endsWith('killed')
      ? killProcess(part, living)
      : pauseProcess(part, living, lastsMs);
  }

  async #problems(): Promise<readonly string[]> {
    const found = [
      ...(await Promise.all(this.#splits.map((split) => this.#problemsOfSplit(split)))).flat(),
      ...(await this.#problemsOfClone()),
      ...(await this.#session.problems()),
      ...((await this.#credits?.problems()) ?? ['no credits were bought']),
      ...((await this.#subscription?.problems()) ?? ['no plan was bought']),
      ...(await this.#messages.problems()),
    ];
    // The balances are checked only when no payment is in flight.
    return found.length > 0 ? found : this.#problemsOfMoney();
  }

  async #problemsOfSplit({ id, recipients }: AskedSplit): Promise<string[]> {
    const { api, chain } = this.#site;
    const path = `/api/underground/splits/${id}`;
    const answer = await api.once('GET', path, this.#key());
    if (answer.status !== 200) return [`the split ${id} is answered with ${answer.status}`];
    const { error, payouts, status } = JSON.parse(answer.text) as SplitAnswer; // typed by its schema
    if (status === 'failed' || status === 'partial') {
      this.#report(`the split ${id} is ${status}: ${error}`);
      await api.once('POST', `${path}/retry`, this.#key());
      return [`the split ${id} is ${status}: ${error}`];
    }
    if (status !== 'completed') return [`the split ${id} is ${status}`];
    const problems: string[] = [];
    for (const [index, { address, amount }] of recipients.entries()) {
      const balance = await chain.balanceOf(chain.local.usdc.address, address);
      if (balance !== amount) {
        problems.push(`${address} of the split ${id} has ${balance}, not ${amount}`);
      }
      const { status: paid, transaction } = payouts[index] ?? {};
      if (paid !== 'confirmed') problems.push(`a payout of the split ${id} is ${paid}`);
      else if (!transaction || !(await chain.hasPaid(transaction))) {
        problems.push(`a payout of the split ${id} has no transaction on the chain`);
      }
    }
    return problems;
  }

  async #problemsOfClone(): Promise<string[]> {
    if (!this.#clone) return [];
    const { id, request } = this.#clone;
    const [found] = await this.#site.database.asPlatform().query<{
      state: string;
      status: string;
      reason: string | null;
    }>(
      `SELECT c.state, a.status, a.status_reason AS reason
         FROM clones c JOIN agents a ON a.id = c.id WHERE c.id = $id`,
      { id },
    );
    if (found?.state === 'handed-over' && found.status === 'active') return [];
    if (found?.state === 'failed' || found?.status === 'error') {
      this.#report(`the clone has failed: ${found.reason}`);
      await this.#requestClone(request);
    }
    return [`the clone is ${found?.state}, its agent ${found?.status}`];
  }

  async #problemsOfMoney(): Promise<string[]> {
    const { chain, database } = this.#site;
    const platform = database.asPlatform();
    const [open] = await platform.query<{
      payments: number;
      clones: number;
      splits: number;
      sessions: number;
      events: number;
      messages: number;
    }>(
      `SELECT (SELECT count(*)::int FROM payments WHERE settled_at IS NULL) AS payments,
              (SELECT count(*)::int FROM clones WHERE state = 'waiting') AS clones,
              (SELECT count(*)::int FROM royalty_splits WHERE status IN ('queued', 'processing')) AS splits,
              (SELECT count(*)::int FROM payment_sessions
                WHERE state IN ('opening', 'active', 'settling')) AS sessions,
              (SELECT count(*)::int FROM processor_events WHERE applied_at IS NULL) AS events,
              (SELECT count(*)::int FROM bus_messages WHERE status = 'queued') AS messages`,
    );
    const { differences, openHolds } = await checkLedger(database, LEDGER_CHECKS);
    const left = Object.entries({ ...open, openHolds }).flatMap(([what, count]) =>
      count === 0 ? [] : [`${count} ${what} are open`],
    );
    const { token, treasury } = chain.local;
    const [onChain, booked] = await Promise.all([
      chain.balanceOf(token.address, treasury),
      balanceOf(platform, 'treasury', 'pathusd'),
    ]);
    if (onChain !== booked.balance) {
      left.push(`the treasury has ${onChain} on the chain, and ${booked.balance} in the ledger`);
    }
    return [...differences, ...left];
  }

  #report(what: string): void {
    if (!this.reported.includes(what)) this.reported.push(what);
  }

  #key = (): string => `${this.#site.run}-${this.#plan.seed}-${this.#asked++}`;
}

const transfer = (token: Hex, to: Hex, amount: bigint) => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
  value: 0n,
});
