// The baseline for the payment processor's events: Koa with the same check of the signature and one insert. A
// separate program: `node bare-webhook.js <owner's database address> <secret>`, which creates its table and sends
// its port to its parent.
import Koa from 'koa';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import pg from 'pg';
import { Stripe } from 'stripe';

/** As many as the platform's own APIs have (src/platform/database/settings.ts). */
const MAX_CONNECTIONS = 20;

/** Seconds, as in the product. */
const TOLERANCE_S = 300;

const INSERT = {
  name: 'insert',
  text: 'INSERT INTO bare_events (id, type, event) VALUES ($1, $2, $3)',
};

const [ownerUrl = '', secret = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: ownerUrl, max: MAX_CONNECTIONS });
await pool.query(
  'CREATE TABLE bare_events (id text PRIMARY KEY, type text NOT NULL, event jsonb NOT NULL)',
);

const app = new Koa();
app.use(async (ctx) => {
  const body = await buffer(ctx.req);
  const signature = ctx.get('stripe-signature');
  const { data, id, type } = Stripe.webhooks.constructEvent(body, signature, secret, TOLERANCE_S);
  await pool.query({ ...INSERT, values: [id, type, JSON.stringify(data.object)] });
  ctx.body = { received: true };
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());
