import { html, type Html } from '../../src/lib/html.js';
import type { StandInPayment, StandInSession } from './payment-objects.js';

const NOTICE = 'This is a stand-in for the payment processor, for developers: no money is moved.';

/** The page on which a checkout is paid. */
export const paymentPage = ({
  amount_total: cents,
  cancel_url,
  currency,
  payment_intent,
}: StandInSession) =>
  page(
    'Payment',
    html`<p>${amountOf(cents, currency)}</p>
      ${
        payment_intent === null
          ? html`<form method="post"><button>Pay</button></form>
              <p><a href="${cancel_url}">Cancel</a></p>`
          : html`<p>This checkout is paid: <a href="/">all payments</a></p>`
      }`,
  );

/** The page on which payments are refunded and disputed. */
export const paymentsPage = (payments: readonly StandInPayment[]) =>
  page(
    'Payments',
    payments.length === 0
      ? html`<p>Nothing is paid yet.</p>`
      : html`<ul>
          ${payments.map(paymentItem)}
        </ul>`,
  );

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
