import type { StandInPayment } from './payment-objects.js';
import { paidBy, StandInSubscriptions } from './subscriptions.js';

interface CallParts {
  readonly subscriptions: StandInSubscriptions;
  readonly payments: ReadonlyMap<string, StandInPayment>;
  readonly newId: (prefix: string) => string;
  readonly refund: (paymentId: string, cents: number) => string;
  readonly chargeOf: (payment: StandInPayment) => object;
  readonly url: string;
}

/** A call of the API: `fields` are those of the query or of the body. */
export interface ApiCall {
  readonly method: string;
  readonly path: readonly string[];
  readonly fields: URLSearchParams;
}

/**
 * Answers the calls about subscriptions, in Stripe's format. @returns undefined for another call.
 * @throws RangeError for an object that does not exist.
 */
export function subscriptionCall(parts: CallParts, call: ApiCall): object | undefined {
  const { fields, method, path } = call;
  const { newId, payments, subscriptions } = parts;
  const [kind, id = '', action] = path;
  switch (`${method} ${kind}`) {
    case 'GET subscriptions':
      return subscriptions.wire(StandInSubscriptions.of(subscriptions.all, id), expansions(fields));
    case 'DELETE subscriptions':
      return subscriptions.wire(subscriptions.cancel(id));
    case 'GET invoices':
      return list(
        subscriptions
          .openInvoices(fields.get('subscription') ?? '')
          .map((invoice) => subscriptions.wireInvoice(invoice)),
      );
    case 'GET invoice_payments':
      return list(invoicePayments(parts, fields.get('payment[payment_intent]') ?? ''));
    case 'GET refunds': {
      const payment = payments.get(fields.get('payment_intent') ?? '');
      return list(payment && payment.refunded > 0 ? [{ id: newId('re'), object: 'refund' }] : []);
    }
    case 'POST refunds': {
      const paymentId = fields.get('payment_intent') ?? '';
      const { amount, refunded } = StandInSubscriptions.of(payments, paymentId);
      return { id: parts.refund(paymentId, amount - refunded), object: 'refund' };
    }
    case 'GET prices':
      if (id !== '') return StandInSubscriptions.of(subscriptions.prices, id);
      return list(
        [...subscriptions.prices.values()].filter(
          ({ lookup_key: key }) => key !== null && key === fields.get('lookup_keys[0]'),
        ),
      );
    case 'POST prices':
      return subscriptions.addPrice(fields);
    case 'POST billing_portal':
      return id === 'configurations' && action === undefined
        ? { id: newId('bpc'), object: 'billing_portal.configuration' }
        : portal(parts, fields);
    default:
      return undefined;
  }
}

function portal({ newId, subscriptions, url }: CallParts, fields: URLSearchParams) {
  const id = newId('bps');
  const change = 'flow_data[subscription_update_confirm]';
  const customer = fields.get('customer') ?? '';
  const returnUrl = fields.get('return_url') ?? '';
  const subscription = [...subscriptions.all.values()].find((each) => each.customer === customer);
  const price = fields.get(`${change}[items][0][price]`) ?? undefined;
  if (price !== undefined) StandInSubscriptions.of(subscriptions.prices, price);
  subscriptions.portals.set(id, {
    id,
    customer,
    subscription: subscription?.id,
    price,
    returnUrl,
  });
  return { id, object: 'billing_portal.session', customer, url: `${url}/portal/${id}` };
}

function invoicePayments(parts: CallParts, paymentId: string) {
  const { payments, subscriptions } = parts;
  const invoice = [...subscriptions.invoices.values()].find(
    ({ payment }) => payment !== undefined && payment === paymentId,
  );
  const payment = payments.get(paymentId);
  if (!invoice || !payment) return [];
  return [
    {
      id: `inpay_${invoice.id}`,
      object: 'invoice_payment',
      status: 'paid',
      invoice: subscriptions.wireInvoice(invoice),
      payment: {
        ...paidBy(paymentId),
        payment_intent: {
          id: paymentId,
          object: 'payment_intent',
          latest_charge: parts.chargeOf(payment),
        },
      },
    },
  ];
}

const expansions = (fields: URLSearchParams): string[] =>
  [...fields].filter(([name]) => name.startsWith('expand[')).map(([, value]) => value);

const list = (data: readonly object[]) => ({ object: 'list', data, has_more: false });
