// Measures events of the payment processor and of providers that are accepted, each kind over a bare Koa handler with
// the same check of the signature and one insert.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startPaymentProcessor, type PaymentProcessor } from '../dev/billing/payment-processor.js';
import { startVideoProvider } from '../dev/video/video-provider.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { emailEvents } from './support/email-events.js';
import { makeFolder } from './support/folder.js';
import { measureInTurns } from './support/in-turns.js';
import { loadCells } from './support/measured-load.js';
import { startPaidApi } from './support/paid-api.js';
import { writeSentOnce, type SentOnce } from './support/sent-once.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';
import { videoReports } from './support/video-reports.js';

/** Minimum share of the bare handler's rate. */
const AIM = 0.7;

/** A webhook, and the bare handler beside it. */
interface Measured {
  readonly name: string;
  readonly path: string;
  readonly bare: string;
  readonly secret: string | undefined;
  /** Makes events that are sent once each. */
  readonly events: (count: number) => Promise<readonly SentOnce[]>;
}

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
  const videos = await startVideoProvider();
  atEnd(() => videos.close());
  const folder = await makeFolder(atEnd);
  const env = { ...processor.env, ...videos.env, ...emailEvents.env };
  const api = await startPaidApi(folder, atEnd, env);
  await emailEvents.prepare(api.ownerUrl);
  const kinds: readonly Measured[] = [
    {
      name: 'events of the payment processor',
      path: '/api/wallet/top-up',
      bare: 'bare-webhook',
      secret: processor.env.PAYPROC_WEBHOOK_SECRET,
      events: (count) => Promise.resolve(Array.from({ length: count }, () => paid(processor))),
    },
    {
      name: 'events of the e-mail provider',
      path: '/api/webhooks/email',
      bare: 'bare-provider-webhook',
      secret: emailEvents.env.EMAIL_WEBHOOK_SECRET,
      events: (count) => Promise.resolve(Array.from({ length: count }, () => emailEvents.next())),
    },
    {
      name: 'events of the video provider',
      path: '/api/webhooks/video',
      bare: 'bare-provider-webhook',
      secret: videos.env.VIDEO_WEBHOOK_SECRET,
      events: (count) => videoReports(api.servingUrl, videos, count),
    },
  ];
  const rows: (string | number)[][] = [];
  for (const kind of kinds) rows.push(...(await measured(kind)));
  console.log(
    `\n${options.connections} connections, ` +
      `medians of ${options.rounds} rounds of ${options.events} events in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each", 'events over it', 'aim'],
    rows,
  );

  /** Measures a webhook and the bare handler in turns, and returns their rows of the table. */
  async function measured({ bare: program, events, name, path: at, secret = '' }: Measured) {
    const bare = await forkUntilMessage<{ port: number }>(program, [api.ownerUrl, secret]);
    atEnd(() => void bare.child.kill());
    const [ours = [], theirs = []] = await measureInTurns(
      [
        { url: `${api.webUrl}${at}`, pid: api.pid },
        { url: `http://127.0.0.1:${bare.message.port}/`, pid: bare.child.pid ?? 0 },
      ],
      { connections: options.connections, rounds: Number(options.rounds) },
      async () => {
        const file = path.join(folder, 'events');
        writeSentOnce(file, await events(Number(options.events)));
        return file;
      },
    );
    const rate = (list: typeof ours) => median(list.map(({ perSecond }) => perSecond));
    return [
      [...loadCells(name, ours), '', ''],
      [...loadCells('  bare Koa handler', theirs), figure(rate(ours) / rate(theirs)), AIM],
    ];
  }
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
