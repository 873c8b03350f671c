import {
  startPaymentProcessor,
  type PaymentProcessor,
} from '../../dev/billing/payment-processor.js';
import { ProcessorEventEffects } from '../../src/billing/apply-events.js';
import type { BillingReconciliation } from '../../src/billing/billing-reconciliation.js';
import type { ProcessorReadings } from '../../src/billing/processor-readings.js';
import { createWorkerServices } from '../../src/services.js';
import { balanceOf, creditsOf, debtOf } from '../../src/money/ledger/ledger.js';
import { formatAmount } from '../../src/types/money.js';
import type { Answer } from '../support/http.js';
import { walletSite, type Person, type WalletSite } from '../money/wallets/support.js';

export interface BillingSite extends WalletSite {
  readonly processor: PaymentProcessor;
  readonly readings: ProcessorReadings;
  readonly reconciliation: BillingReconciliation;
  /** Delivers an event to the webhook. */
  deliver(event: object): Promise<Answer>;
  /** Applies all events that are stored and not yet applied. */
  apply(): Promise<void>;
  /** Buys credits by a checkout, and has the payment booked. @returns the payment's id. */
  buy(person: Person, cents?: number): Promise<string>;
  /** Buys a plan by a checkout, and has its state written. @returns the subscription's id. */
  subscribe(person: Person, plan?: string): Promise<string>;
  /** Delivers and applies the events since the last call. */
  catchUp(): Promise<void>;
  /** Returns a user's bought credits and debt as texts. */
  moneyOf(person: Pick<Person, 'id'>): Promise<{ credits: string; debt: string }>;
}

/** Starts the web API with a stand-in of the payment processor. */
export async function billingSite(
  env: Readonly<Record<string, string>> = {},
): Promise<BillingSite> {
  const processor = await startPaymentProcessor();
  const site = await walletSite({ ...processor.env, ...env });
  const { db } = site.database;
  const effects = new ProcessorEventEffects(db);
  const { log, settings } = site.dependencies;
  const { billingReconciliation, processorReadings } = createWorkerServices({
    database: db,
    log,
    settings,
  });
  let delivered = 0;

  const deliver = (event: object) =>
    site.web(undefined, 'POST', '/api/wallet/top-up', processor.signed(event));

  async function apply(): Promise<void> {
    const rows = await db
      .asPlatform()
      .query<{ id: string }>('SELECT id FROM processor_events WHERE applied_at IS NULL');
    await Promise.all(
      rows.map(async ({ id }) => {
        if ((await effects.apply(id)) === 'reading') await processorReadings.read(id);
      }),
    );
  }

  async function catchUp(): Promise<void> {
    const events = processor.events.slice(delivered);
    delivered = processor.events.length;
    for (const event of events) await deliver(event);
    await apply();
  }

  return {
    ...site,
    processor,
    readings: processorReadings,
    reconciliation: billingReconciliation,
    deliver,
    apply,
    catchUp,
    async buy(person, cents = 1_000) {
      const { body } = await site.web(person, 'GET', `/api/wallet/top-up?amount=${cents}`);
      const payment = processor.pay(body.sessionId);
      await catchUp();
      return payment;
    },
    async subscribe(person, plan = 'solo') {
      const body = { action: 'create-checkout', plan };
      const answer = await site.web(person, 'POST', '/api/billing', { body });
      const subscription = processor.pay(answer.body.sessionId);
      await catchUp();
      return subscription;
    },
    async moneyOf({ id }) {
      const platform = db.asPlatform();
      const [credits, debt] = await Promise.all([
        balanceOf(platform, creditsOf(id), 'usd'),
        balanceOf(platform, debtOf(id), 'usd'),
      ]);
      return { credits: formatAmount(credits.balance), debt: formatAmount(-debt.balance) };
    },
    async close() {
      await site.close();
      await processor.close();
    },
  };
}
