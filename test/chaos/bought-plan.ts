import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import { penceOf, PLAN_CURRENCY } from '../../src/billing/plan-prices.js';
import type { Buyer, CreditSite } from './bought-credits.js';
import type { KillAtStep } from './kill-at-step.js';
import type { MoneyPlan, PlanChange } from './money-plan.js';
import { ProcessorReports } from './processor-reports.js';

const TIMEOUT_MS = 180_000;
const PAUSE_MS = 250;

const BOUGHT = 'solo';
const RAISED = 'collective';

/** The row of a subscription. */
interface Written {
  readonly id: string;
  readonly plan: string;
  readonly status: string;
}

/** Statuses of the platform by those of the processor. */
const STATUSES: Readonly<Record<string, string>> = {
  active: 'active',
  past_due: 'past_due',
  unpaid: 'cancelled',
  canceled: 'cancelled',
};

/** A plan that a user buys and changes in one round. */
export class BoughtPlan {
  readonly #site: CreditSite;
  readonly #plan: MoneyPlan['subscription'];
  readonly #buyer: Buyer;
  readonly #reports: ProcessorReports;
  readonly #key: () => string;
  #id: string | undefined;
  #isRaised = false;

  constructor(
    site: CreditSite,
    plan: MoneyPlan['subscription'],
    round: { readonly buyer: Buyer; readonly kill: KillAtStep; readonly key: () => string },
  ) {
    this.#site = site;
    this.#plan = plan;
    this.#buyer = round.buyer;
    this.#reports = new ProcessorReports(site, round);
    this.#key = round.key;
  }

  /** Buys, changes, and reports both until the platform has all reports. */
  async go(): Promise<void> {
    await delay(this.#plan.afterMs);
    const { processor } = this.#site;
    const sessionId = await this.#start();
    let id = '';
    const bought = this.#reports.eventsOf(() => (id = processor.pay(sessionId)));
    this.#id = id;
    const reports = [bought, ...this.#plan.changes.map((each) => this.#change(id, each))];
    await Promise.all(reports.map((events) => this.#reports.report(events, 'subscription')));
  }

  /** Changes the subscription at the processor. @returns its events. */
  #change(id: string, change: PlanChange) {
    const { subscriptions } = this.#site.processor;
    return this.#reports.eventsOf(() => {
      switch (change) {
        case 'renewed':
        case 'not paid':
          return subscriptions.renew(id, change === 'renewed');
        case 'paid':
          return subscriptions.pay(id);
        case 'raised': {
          const [unit_amount, currency] = [String(penceOf(RAISED)), PLAN_CURRENCY];
          const price = subscriptions.addPrice(new URLSearchParams({ unit_amount, currency }));
          subscriptions.change(id, price.id, true);
          this.#isRaised = true;
          return undefined;
        }
        case 'given up':
          return subscriptions.giveUp(id);
        case 'cancelled':
          subscriptions.cancel(id);
          return undefined;
      }
    });
  }

  /** Starts a checkout, with retries. @returns the newest checkout's id at the processor. */
  async #start(): Promise<string> {
    const { cookie, id } = this.#buyer;
    let reported = '';
    const sessionId = await poll(
      async () => {
        const path = `/api/payproc/checkout?plan=${BOUGHT}`;
        const asked = await this.#site.web.once('GET', path, this.#key(), undefined, { cookie });
        reported = `${asked.status} ${asked.text.slice(0, 200)}`;
        if (asked.status !== 200) return undefined;
        const [open] = await this.#site.database.asPlatform().query<{ sessionId: string }>(
          `SELECT session_id AS "sessionId" FROM subscription_checkouts
            WHERE user_id = $id AND ended_at IS NULL AND session_id IS NOT NULL
            ORDER BY created_at DESC LIMIT 1`,
          { id },
        );
        return open?.sessionId;
      },
      { timeoutMs: TIMEOUT_MS, everyMs: PAUSE_MS },
    );
    if (sessionId === undefined) throw new Error(`no checkout of a plan was made: ${reported}`);
    return sessionId;
  }

  /** Returns the problems: a state that differs from the processor's, or another subscription. */
  async problems(): Promise<string[]> {
    const { database, processor } = this.#site;
    const rows = await database.asPlatform().query<Written>(
      `SELECT processor_id AS id, plan, status FROM subscriptions
        WHERE user_id = $id AND source = 'processor'`,
      { id: this.#buyer.id },
    );
    const sold = this.#id === undefined ? undefined : processor.subscriptions.all.get(this.#id);
    if (sold === undefined) return ['no plan was bought'];
    const plan = this.#isRaised ? RAISED : BOUGHT;
    const wanted = `${sold.id} ${plan} ${STATUSES[sold.status]}`;
    const found = rows.map((row) => `${row.id} ${row.plan} ${row.status}`).join(', ');
    return found === wanted ? [] : [`the subscriptions are [${found}], not [${wanted}]`];
  }
}
