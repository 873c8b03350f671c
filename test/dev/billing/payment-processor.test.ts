import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  startPaymentProcessor,
  type PaymentProcessor,
} from '../../../dev/billing/payment-processor.js';
import { Processor } from '../../../src/billing/processor.js';
import { ProcessorSubscriptions } from '../../../src/billing/processor-subscriptions.js';
import { billingSettings } from '../../../src/billing/settings.js';
import { readAreas } from '../../../src/platform/environment/read.js';

/** Deliveries to the webhook, the first of which are refused. */
const received: { body: string; signature: string }[] = [];
let refusals = 1;

const webhook = createServer((request: IncomingMessage, response) => {
  void text(request).then((body) => {
    received.push({ body, signature: String(request.headers['stripe-signature']) });
    response.writeHead(refusals-- > 0 ? 500 : 200).end();
  });
});

let standIn: PaymentProcessor;
let processor: Processor;

beforeAll(async () => {
  await new Promise<void>((resolve) => void webhook.listen(0, '127.0.0.1', resolve));
  const { port } = webhook.address() as AddressInfo;
  standIn = await startPaymentProcessor({ webhookUrl: `http://127.0.0.1:${port}/hook` });
  processor = new Processor(readAreas({ billing: billingSettings }, standIn.env).billing);
});
afterAll(async () => {
  await standIn?.close();
  webhook.close();
});

const checkout = () =>
  processor.createCheckout({
    checkoutId: 'checkout-1',
    cents: 500,
    currency: 'usd',
    price: undefined,
    successUrl: 'http://127.0.0.1:1/dashboard?done=credits-bought',
    cancelUrl: 'http://127.0.0.1:1/dashboard',
  });

const visit = (path: string, init: RequestInit = {}) =>
  fetch(new URL(path, standIn.url), { redirect: 'manual', ...init });

test('a checkout is paid, refunded and disputed on pages that are marked as a stand-in', async () => {
  const { sessionId, url } = await checkout();
  expect((await checkout()).sessionId).toBe(sessionId);
  const page = await (await visit(url)).text();
  expect(page).toContain('5.00 USD');
  expect(page).toContain('stand-in');
  const paid = await visit(url, { method: 'POST' });
  expect([paid.status, paid.headers.get('location')]).toEqual([
    303,
    'http://127.0.0.1:1/dashboard?done=credits-bought',
  ]);
  const payment = standIn.sessions.get(sessionId)?.payment_intent ?? '';
  expect(await (await visit('/')).text()).toContain(payment);
  const form = (fields: Record<string, string>) => ({
    method: 'POST',
    body: new URLSearchParams(fields),
  });
  const refund = `/payments/${payment}/refund`;
  expect((await visit(refund, form({ amount: '200' }))).status).toBe(303);
  expect((await visit(refund, form({ amount: '301' }))).status).toBe(400);
  const dispute = form({ status: 'needs_response' });
  expect((await visit(`/payments/${payment}/dispute`, dispute)).status).toBe(303);
  expect((await visit('/pay/unknown')).status).toBe(404);
  expect(standIn.events.map(({ type }) => type)).toEqual([
    'checkout.session.completed',
    'charge.refunded',
    'charge.dispute.created',
  ]);
  // The refused delivery is repeated.
  await expect.poll(() => received.length).toBe(4);
  for (const { body, signature } of received) {
    expect(await processor.verify(Buffer.from(body), signature)).toMatchObject({ object: 'event' });
  }
});

test('a plan is bought, changed, renewed and cancelled on the pages of the stand-in', async () => {
  const { billing } = readAreas({ billing: billingSettings }, standIn.env);
  const plans = new ProcessorSubscriptions(processor, billing);
  const form = (action: string) => ({ method: 'POST', body: new URLSearchParams({ action }) });
  const { sessionId, url } = await plans.createCheckout({
    checkoutId: 'checkout-2',
    plan: 'solo',
    successUrl: 'http://127.0.0.1:1/dashboard?done=plan-bought',
    cancelUrl: 'http://127.0.0.1:1/dashboard',
  });
  expect(await (await visit(url)).text()).toContain('79.00 GBP a month');
  expect((await visit(url, { method: 'POST' })).status).toBe(303);
  const id = standIn.sessions.get(sessionId)?.subscription ?? '';
  const returnUrl = 'http://127.0.0.1:1/dashboard?done=plan-changed';
  const portal = await plans.createPortal({ subscriptionId: id, plan: 'network', returnUrl });
  expect(await (await visit(portal)).text()).toContain('499.00 GBP a month');
  const changed = await visit(portal, form('change'));
  expect([changed.status, changed.headers.get('location')]).toEqual([303, returnUrl]);
  expect(await plans.read(id)).toMatchObject({ status: 'active', price: { cents: 49_900 } });
  // The price is made once.
  await plans.createPortal({ subscriptionId: id, plan: 'network', returnUrl });
  expect([...standIn.subscriptions.prices.values()].map((each) => each.unit_amount)).toEqual([
    7_900, 49_900,
  ]);
  const act = async (action: string) => {
    expect((await visit(`/subscriptions/${id}`, form(action))).status).toBe(303);
    return (await plans.read(id))?.status;
  };
  expect(await (await visit('/')).text()).toContain(`/subscriptions/${id}`);
  expect(await act('renew')).toBe('active');
  expect(await act('renew-unpaid')).toBe('past_due');
  expect(await act('pay')).toBe('active');
  expect(await act('give-up')).toBe('unpaid');
  expect(await act('cancel')).toBe('canceled');
  expect((await visit(`/subscriptions/${id}`, form('other'))).status).toBe(404);
  expect(await plans.read('sub_unknown')).toBeUndefined();
});
