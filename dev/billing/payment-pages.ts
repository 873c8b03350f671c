import { html, type Html } from '../../src/lib/html.js';
import type {
  StandInPayment,
  StandInPortal,
  StandInPrice,
  StandInSession,
  StandInSubscription,
} from './payment-objects.js';

const NOTICE = 'This is a stand-in for the payment processor, for developers: no money is moved.';

/** The page on which a checkout is paid. */
export const paymentPage = ({
  amount_total: cents,
  cancel_url,
  currency,
  mode,
  status,
}: StandInSession) =>
  page(
    'Payment',
    html`<p>${amountOf(cents, currency)}${mode === 'subscription' && ' a month'}</p>
      ${
        status === 'open'
          ? html`<form method="post"><button>Pay</button></form>
              <p><a href="${cancel_url}">Cancel</a></p>`
          : html`<p>
              This checkout ${status === 'complete' ? 'is paid' : 'has expired'}:
              <a href="/">all payments</a>
            </p>`
      }`,
  );

/** The page on which payments are refunded and disputed. */
export const paymentsPage = (
  payments: readonly StandInPayment[],
  subscriptions: readonly StandInSubscription[],
) =>
  page(
    'Payments',
    payments.length === 0
      ? html`<p>No payment was made yet.</p>`
      : html`<ul>
          ${subscriptions.map(subscriptionItem)} ${payments.map(paymentItem)}
        </ul>`,
  );

/** The page on which a customer confirms a change of plan; without a price, pays or cancels. */
export const portalPage = (
  { returnUrl }: StandInPortal,
  subscription: StandInSubscription,
  price: StandInPrice | undefined,
) =>
  page(
    'Your subscription',
    html`<p>${describe(subscription)}</p>
      <form method="post">
        ${
          price
            ? html`<p>Change to ${amountOf(price.unit_amount, price.currency)} a month:</p>
                <button name="action" value="change">Confirm</button>
                <button name="action" value="change-unpaid">Confirm, and fail to pay</button>`
            : html`<button name="action" value="pay">Pay what is open</button>
                <button name="action" value="end">Cancel at the end of the period</button>`
        }
      </form>
      <p><a href="${returnUrl}">Return</a></p>`,
  );

const describe = ({ cancelAt, id, periodEnd, price, status }: StandInSubscription) =>
  `${id}: ${amountOf(price.unit_amount, price.currency)} a month, ${status}, ` +
  `${cancelAt === null ? 'period' : 'cancelled, plan'} until ${new Date(periodEnd * 1_000).toISOString()}`;

const subscriptionItem = (subscription: StandInSubscription) =>
  html`<li>
    <p>${describe(subscription)}</p>
    <form method="post" action="/subscriptions/${subscription.id}">
      <button name="action" value="renew">Begin the next month, paid</button>
      <button name="action" value="renew-unpaid">Begin the next month, unpaid</button>
      <button name="action" value="pay">Pay what is open</button>
      <button name="action" value="give-up">Give up collecting</button>
      <button name="action" value="cancel">Cancel now</button>
    </form>
  </li>`;

const paymentItem = ({ amount, currency, dispute, id, refunded }: StandInPayment) =>
  html`<li>
    <p>
      ${id}: ${amountOf(amount, currency)}, refunded ${amountOf(refunded, currency)}, dispute:
      ${dispute?.status ?? 'none'}
    </p>
    <form method="post" action="/payments/${id}/refund">
      <label>Cents <input name="amount" value="${amount - refunded}" /></label>
      <button>Refund</button>
    </form>
    <form method="post" action="/payments/${id}/dispute">
      <button name="status" value="needs_response">Open a dispute</button>
      <button name="status" value="won">Win it</button>
      <button name="status" value="lost">Lose it</button>
    </form>
  </li>`;

const amountOf = (cents: number, currency: string) =>
  `${(cents / 100).toFixed(2)} ${currency.toUpperCase()}`;

const page = (title: string, content: Html): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
      </head>
      <body>
        <h1>${title}</h1>
        <p>${NOTICE}</p>
        ${content}
      </body>
    </html>`.text;
