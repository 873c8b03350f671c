// The baseline for events of a provider: Koa with the same check of the signature by Standard Webhooks and one insert.
// A separate program: `node bare-provider-webhook.js <owner's database address> <secret>`, which creates its table and
// sends its port to its parent.
import Koa from 'koa';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';

/** As many as the platform's own APIs have (src/platform/database/settings.ts). */
const MAX_CONNECTIONS = 20;

const INSERT = {
  name: 'insert',
  text: 'INSERT INTO bare_provider_events (id, event) VALUES ($1, $2)',
};

const [ownerUrl = '', secret = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: ownerUrl, max: MAX_CONNECTIONS });
await pool.query(
  'CREATE TABLE IF NOT EXISTS bare_provider_events (id text PRIMARY KEY, event jsonb NOT NULL)',
);

const webhook = new Webhook(secret);
const app = new Koa();
app.use(async (ctx) => {
  const body = await buffer(ctx.req);
  const id = ctx.get('webhook-id');
  const event = webhook.verify(body, {
    'webhook-id': id,
    'webhook-timestamp': ctx.get('webhook-timestamp'),
    'webhook-signature': ctx.get('webhook-signature'),
  });
  await pool.query({ ...INSERT, values: [id, JSON.stringify(event)] });
  ctx.body = { received: true };
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());
