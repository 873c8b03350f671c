import type { Stripe } from 'stripe';
import { BadRequestError, ServiceError } from '../lib/errors.js';
import type { BillingSettings } from './settings.js';

/** Milliseconds for one call of the processor's API; a failed call is repeated once. */
const CALL_TIMEOUT_MS = 8_000;

/** Seconds by which the time of a signature may differ from this machine's clock. */
const TOLERANCE_S = 300;

/** Seconds for which a checkout can be paid. */
const CHECKOUT_S = 60 * 60;

/** Returns the time at which a new checkout expires, in seconds since 1970. */
export const checkoutEnd = (): number => Math.floor(Date.now() / 1_000) + CHECKOUT_S;

export const NO_CHECKOUT = 'The payment processor created no checkout: retry later';

/** 500: the payment processor is not configured, or did not make a checkout. */
export class ProcessorError extends ServiceError {
  override readonly name = 'ProcessorError';

  constructor(message: string, options?: ErrorOptions) {
    super(500, message, undefined, {}, options);
  }
}

/** The checkout to make. */
export interface CheckoutOrder {
  /** The id of our row, which the processor returns with its events. */
  readonly checkoutId: string;
  readonly cents: number;
  readonly currency: string;
  /** The processor's price; undefined if the amount is sent. */
  readonly price: string | undefined;
  readonly successUrl: string;
  readonly cancelUrl: string;
}

export interface MadeCheckout {
  /** The checkout's id at the processor. */
  readonly sessionId: string;
  /** The processor's page on which the checkout is paid. */
  readonly url: string;
}

/** The payment processor's API, and the verification of its webhooks. */
export class Processor {
  readonly #settings: BillingSettings;
  #library: Promise<typeof Stripe> | undefined;

  constructor(settings: BillingSettings) {
    this.#settings = settings;
  }

  /** Makes a checkout; idempotent for the id of our row. @throws ProcessorError */
  async createCheckout(order: CheckoutOrder): Promise<MadeCheckout> {
    const { cancelUrl, cents, checkoutId, currency, price, successUrl } = order;
    const metadata = { checkoutId };
    const { id, url } = await this.call(NO_CHECKOUT, (stripe) =>
      stripe.checkout.sessions.create(
        {
          mode: 'payment',
          client_reference_id: checkoutId,
          metadata,
          payment_intent_data: { metadata },
          line_items: [
            {
              quantity: 1,
              ...(price === undefined
                ? {
                    price_data: {
                      currency,
                      unit_amount: cents,
                      product_data: { name: 'Credits' },
                    },
                  }
                : { price }),
            },
          ],
          success_url: successUrl,
          cancel_url: cancelUrl,
          expires_at: checkoutEnd(),
        },
        { idempotencyKey: checkoutId },
      ),
    );
    if (url === null) throw new ProcessorError('The payment processor sent no payment page');
    return { sessionId: id, url };
  }

  /** Calls the API. @throws ProcessorError with the message `refusal`, if the call fails */
  async call<T>(refusal: string, work: (stripe: Stripe) => Promise<T>): Promise<T> {
    const { secretKey } = this.#configured();
    const Library = await this.#load();
    try {
      return await work(new Library(secretKey, this.#options()));
    } catch (cause) {
      if (!(cause instanceof Library.errors.StripeError)) throw cause;
      throw new ProcessorError(refusal, { cause });
    }
  }

  /** Verifies the signature of a webhook's raw body, and returns its JSON. @throws BadRequestError, ProcessorError */
  async verify(body: Buffer, signature: string | undefined): Promise<unknown> {
    const { webhookSecrets } = this.#configured();
    const Library = await this.#load();
    if (signature === undefined || !isTimely(signature)) throw invalidSignature();
    for (const secret of webhookSecrets) {
      try {
        return Library.webhooks.constructEvent(body, signature, secret, TOLERANCE_S);
      } catch (error) {
        if (error instanceof Library.errors.StripeSignatureVerificationError) continue;
        // The SDK parses a body only after it has verified the signature.
        throw new BadRequestError('The event is not valid JSON');
      }
    }
    throw invalidSignature();
  }

  /** Returns the keys. @throws ProcessorError if one is missing. */
  #configured() {
    const { secretKey, webhookSecrets } = this.#settings;
    if (secretKey === undefined || webhookSecrets === undefined) {
      throw new ProcessorError(
        'The payment processor is not configured: set PAYPROC_SECRET_KEY and PAYPROC_WEBHOOK_SECRET',
      );
    }
    return { secretKey, webhookSecrets };
  }

  /** Loads the SDK at its first use, because most processes never need it. */
  #load(): Promise<typeof Stripe> {
    return (this.#library ??= import('stripe').then((module) => module.Stripe));
  }

  #options() {
    const { apiUrl } = this.#settings;
    const { hostname, port, protocol } = new URL(apiUrl ?? 'https://api.stripe.com');
    const isPlain = protocol === 'http:';
    return {
      host: hostname,
      port: port || (isPlain ? 80 : 443),
      protocol: isPlain ? ('http' as const) : ('https' as const),
      timeout: CALL_TIMEOUT_MS,
      maxNetworkRetries: 1,
      telemetry: false,
    };
  }
}

const invalidSignature = () => new BadRequestError('Invalid signature');

/** Reports whether a signature has one time that is close to now: the SDK accepts times in the future. */
function isTimely(signature: string): boolean {
  const times = signature.split(',').filter((part) => part.startsWith('t='));
  const [time = ''] = times;
  if (times.length !== 1 || !/^t=\d{1,12}$/.test(time)) return false;
  return Math.abs(Date.now() / 1_000 - Number(time.slice(2))) <= TOLERANCE_S;
}
