// The baseline for events that are signed by Standard Webhooks: Koa with the same check of the signature and one insert.
// A separate program: `node bare-signed-webhook.js <owner's database address> <secret>`, which creates its table and
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
  text: 'INSERT INTO bare_signed_events (id, event) VALUES ($1, $2)',
};

const [ownerUrl = '', secret = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: ownerUrl, max: MAX_CONNECTIONS });
await pool.query('CREATE TABLE bare_signed_events (id text PRIMARY KEY, event jsonb NOT NULL)');
const webhook = new Webhook(secret);

const app = new Koa();
app.use(async (ctx) => {
  const body = await buffer(ctx.req);
  const headers = {
    'webhook-id': ctx.get('svix-id'),
    'webhook-timestamp': ctx.get('svix-timestamp'),
    'webhook-signature': ctx.get('svix-signature'),
  };
  const event = webhook.verify(body, headers);
  await pool.query({ ...INSERT, values: [headers['webhook-id'], JSON.stringify(event)] });
  ctx.body = { received: true };
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());
