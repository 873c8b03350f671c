import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import type { PaymentProcessor } from '../../dev/billing/payment-processor.js';
import type { Database } from '../../src/platform/database/database.js';
import { balanceOf, creditsOf, debtOf } from '../../src/money/ledger/ledger.js';
import { CENT } from '../../src/types/money.js';
import type { CarefulClient } from './careful-client.js';
import type { KillAtStep } from './kill-at-step.js';
import type { MoneyPlan, PlannedPurchase } from './money-plan.js';
import { ProcessorReports } from './processor-reports.js';

const TOP_UP = '/api/wallet/top-up';

const TIMEOUT_MS = 180_000;
const PAUSE_MS = 250;

/** The services that purchases of credits use and the check reads. */
export interface CreditSite {
  readonly web: CarefulClient;
  readonly processor: PaymentProcessor;
  readonly database: Database;
}

/** A signed-in user who buys. */
export interface Buyer {
  readonly id: string;
  readonly cookie: string;
}

/** A delivered event of the payment processor. */
interface Delivered {
  readonly event_id: string;
  readonly outcome: string | null;
}

/** Purchases of credits of one round, with refunds and disputes, reported by a processor that repeats itself. */
export class BoughtCredits {
  readonly #site: CreditSite;
  readonly #plan: MoneyPlan['credits'];
  readonly #buyer: Buyer;
  readonly #reports: ProcessorReports;
  readonly #key: () => string;
  /** Cents that were paid and not reversed. */
  #cents = 0;

  constructor(
    site: CreditSite,
    plan: MoneyPlan['credits'],
    round: { readonly buyer: Buyer; readonly kill: KillAtStep; readonly key: () => string },
  ) {
    this.#site = site;
    this.#plan = plan;
    this.#buyer = round.buyer;
    this.#reports = new ProcessorReports(site, round);
    this.#key = round.key;
  }

  /** Buys, reverses the payment, and reports both until the platform has all reports. */
  async go(): Promise<void> {
    await delay(this.#plan.afterMs);
    await Promise.all(this.#plan.purchases.map((purchase) => this.#buy(purchase)));
  }

  async #buy({ cents, dispute, isRefundFirst, refunds }: PlannedPurchase): Promise<void> {
    const { processor } = this.#site;
    const sessionId = await this.#start(cents);
    let payment = '';
    const paid = this.#reports.eventsOf(() => (payment = processor.pay(sessionId)));
    this.#cents += cents;
    const takenBack = this.#reports.eventsOf(() => {
      for (const each of refunds) processor.refund(payment, each);
      if (dispute === undefined) return;
      processor.dispute(payment, 'needs_response');
      processor.dispute(payment, dispute);
    });
    const refunded = refunds.reduce((sum, each) => sum + each, 0);
    this.#cents -= dispute === 'lost' ? cents : refunded;
    const steps = [
      () => this.#reports.report(paid, 'credit'),
      () => this.#reports.report(takenBack, 'refund'),
    ];
    for (const step of isRefundFirst ? steps.toReversed() : steps) await step();
  }

  /** Starts a checkout, with retries. @returns the checkout's id at the processor. */
  async #start(cents: number): Promise<string> {
    let reported = '';
    const sessionId = await poll(
      async () => {
        const path = `${TOP_UP}?amount=${cents}`;
        const { cookie } = this.#buyer;
        const { status, text } = await this.#site.web.once('GET', path, this.#key(), undefined, {
          cookie,
        });
        reported = `${status} ${text}`;
        return status === 200 ? /"sessionId":"(\w+)"/.exec(text)?.[1] : undefined;
      },
      { timeoutMs: TIMEOUT_MS, everyMs: PAUSE_MS },
    );
    if (sessionId === undefined) throw new Error(`no checkout was made: ${reported}`);
    return sessionId;
  }

  /** Returns the problems: events that were lost or not booked, and credits that differ from the payments. */
  async problems(): Promise<string[]> {
    const platform = this.#site.database.asPlatform();
    const rows = await platform.query<Delivered>(
      'SELECT event_id, outcome FROM processor_events WHERE event_id = ANY ($received)',
      { received: this.#reports.received },
    );
    const outcomes = new Map(rows.map(({ event_id: id, outcome }) => [id, outcome]));
    const found = [...new Set(this.#reports.received)].flatMap((id) => {
      if (!outcomes.has(id)) return [`the event ${id} was lost after its 200`];
      const outcome = outcomes.get(id);
      return outcome === 'booked' ? [] : [`the event ${id} is ${outcome ?? 'not applied'}`];
    });
    const { id } = this.#buyer;
    const [credits, debt] = await Promise.all([
      balanceOf(platform, creditsOf(id), 'usd'),
      balanceOf(platform, debtOf(id), 'usd'),
    ]);
    const wanted = BigInt(this.#cents) * CENT;
    if (credits.balance !== wanted || debt.balance !== 0n) {
      found.push(`the credits are ${credits.balance} and ${debt.balance}, not ${wanted} and 0`);
    }
    return found;
  }
}
