// Measures events that are accepted, of the payment processor and of the provider of e-mails, each over a bare Koa
// handler with the same check of the signature and one insert.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startPaymentProcessor, type PaymentProcessor } from '../dev/billing/payment-processor.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { emailEvents } from './support/email-events.js';
import { makeFolder } from './support/folder.js';
import { measureInTurns } from './support/in-turns.js';
import { loadCells } from './support/measured-load.js';
import { startPaidApi } from './support/paid-api.js';
import { writeSentOnce } from './support/sent-once.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Minimum share of the bare handler's rate. */
const AIM = 0.7;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    /** Events of each round, sent once each. */
    events: { type: 'string', default: '8000' },
    connections: { type: 'string', default: '16' },
  },
});

await runBenchmark(async (atEnd) => {
  const processor = await startPaymentProcessor();
  atEnd(() => processor.close());
  const folder = await makeFolder(atEnd);
  const api = await startPaidApi(folder, atEnd, { ...processor.env, ...emailEvents.env });
  await emailEvents.prepare(api.ownerUrl);
  const kinds = [
    {
      name: 'events of the payment processor',
      path: '/api/wallet/top-up',
      bare: 'bare-webhook',
      secret: processor.env.PAYPROC_WEBHOOK_SECRET ?? '',
      next: () => paid(processor),
    },
    {
      name: 'e-mails to agents',
      path: '/api/webhooks/email',
      bare: 'bare-signed-webhook',
      secret: emailEvents.secret,
      next: () => emailEvents.next(),
    },
  ];
  const rows: string[][] = [];
  for (const { bare: program, name, next, path: at, secret } of kinds) {
    const bare = await forkUntilMessage<{ port: number }>(program, [api.ownerUrl, secret]);
    atEnd(() => void bare.child.kill());
    const [ours = [], theirs = []] = await measureInTurns(
      [
        { url: `${api.webUrl}${at}`, pid: api.pid },
        { url: `http://127.0.0.1:${bare.message.port}/`, pid: bare.child.pid ?? 0 },
      ],
      { connections: options.connections, rounds: Number(options.rounds) },
      () => {
        const file = path.join(folder, 'events');
        writeSentOnce(file, Array.from({ length: Number(options.events) }, next));
        return Promise.resolve(file);
      },
    );
    const rate = (list: typeof ours) => median(list.map(({ perSecond }) => perSecond));
    rows.push(
      [...loadCells(name, ours), '', ''],
      [...loadCells('  bare Koa handler', theirs), figure(rate(ours) / rate(theirs)), `${AIM}`],
    );
  }
  console.log(
    `\n${options.connections} connections, ` +
      `medians of ${options.rounds} rounds of ${options.events} events in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each", 'events over it', 'aim'],
    rows,
  );
});

/** Returns the signed report of a payment, with all parts that the product reads and more. */
function paid(processor: PaymentProcessor) {
  const id = () => randomUUID().replaceAll('-', '');
  return processor.signed({
    id: `evt_${id()}`,
    object: 'event',
    api_version: '2026-09-30.basil',
    type: 'checkout.session.completed',
    created: Math.floor(Date.now() / 1_000),
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    data: {
      object: {
        id: `cs_test_${id()}`,
        object: 'checkout.session',
        mode: 'payment',
        client_reference_id: randomUUID(),
        metadata: { checkoutId: randomUUID() },
        amount_subtotal: 1_000,
        amount_total: 1_000,
        currency: 'usd',
        payment_method_types: ['card', 'link'],
        payment_status: 'paid',
        payment_intent: `pi_${id()}`,
        status: 'complete',
        customer_details: { email: 'buyer@example.com', address: { country: 'CH' } },
        success_url: 'http://127.0.0.1:3000/dashboard?done=credits-bought',
        cancel_url: 'http://127.0.0.1:3000/dashboard?done=credits-not-bought',
      },
    },
  });
}
