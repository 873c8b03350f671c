import { randomUUID } from 'node:crypto';
import type { TenantDatabase } from '../platform/database/database.js';
import { CREDIT_PRICES, type CreditPrice } from '../types/credit-prices.js';
import type { MadeCheckout, Processor } from './processor.js';
import type { BillingSettings } from './settings.js';

const CURRENCY = 'usd';

interface CheckoutsParts {
  readonly processor: Pick<Processor, 'createCheckout'>;
  readonly settings: Pick<BillingSettings, 'prices'>;
  /** Public address of the web API, where the buyer returns to. */
  readonly webUrl: string;
}

/** Purchases of credits at the payment processor. */
export class Checkouts {
  readonly #parts: CheckoutsParts;

  constructor(parts: CheckoutsParts) {
    this.#parts = parts;
  }

  /** Starts a purchase: stores our row first, which the processor's events name. @throws ProcessorError */
  async start(tenant: TenantDatabase, userId: string, price: CreditPrice): Promise<MadeCheckout> {
    const { processor, settings, webUrl } = this.#parts;
    const id = randomUUID();
    const cents = CREDIT_PRICES[price];
    await tenant.query(
      `INSERT INTO checkouts (id, user_id, cents, currency)
       VALUES ($id, $userId, $cents, '${CURRENCY}')`,
      { id, userId, cents },
    );
    const made = await processor.createCheckout({
      checkoutId: id,
      cents,
      currency: CURRENCY,
      price: settings.prices[price],
      successUrl: `${webUrl}/dashboard?done=credits-bought`,
      cancelUrl: `${webUrl}/dashboard?done=credits-not-bought`,
    });
    const { sessionId } = made;
    await tenant.query('UPDATE checkouts SET session_id = $sessionId WHERE id = $id', {
      id,
      sessionId,
    });
    return made;
  }
}
