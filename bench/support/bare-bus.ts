// The baseline for messages of the bus: Koa with one recovered signature and one insert. A separate program:
// `node bare-bus.js <database address> [receiver]`, which creates its table and sends its port to its parent. With
// a receiver, each stored message is posted to it, signed.
import { createHmac } from 'node:crypto';
import Koa from 'koa';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import pg from 'pg';
import { Agent, request } from 'undici';
import type { Hex } from 'viem';
import { busText, prepared, type BusMessage } from '../../src/bus/bus-message.js';
import { recoveredSigner } from '../../src/money/chain/wallet-signature.js';

/** As many as the platform's own APIs have (src/platform/database/settings.ts). */
const MAX_CONNECTIONS = 20;

const POST_TIMEOUT_MS = 10_000;

const SECRET = 'of-a-benchmark';

const INSERT = {
  name: 'insert',
  text: 'INSERT INTO bare_messages (sender, id, message) VALUES ($1, $2, $3)',
};

const [databaseUrl = '', receiver = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: databaseUrl, max: MAX_CONNECTIONS });
const dispatcher = new Agent({ headersTimeout: POST_TIMEOUT_MS, bodyTimeout: POST_TIMEOUT_MS });
await pool.query(
  'CREATE TABLE bare_messages (sender text, id text, message text NOT NULL, PRIMARY KEY (sender, id))',
);

const app = new Koa();
app.use(async (ctx) => {
  // The benchmark sends nothing else.
  const { signature, ...message } = (await json(ctx.req)) as BusMessage & { signature: Hex };
  const { canonical } = prepared(message);
  const signer = await recoveredSigner(busText(canonical), signature);
  if (signer === undefined) return ctx.throw(401);
  const { messageId } = message;
  await pool.query({ ...INSERT, values: [signer, messageId, canonical] });
  ctx.body = { success: true, messageId };
  if (receiver !== '') void deliver(messageId, canonical);
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());

/** Posts a message; a failure ends the process, since the benchmark waits for each message. */
async function deliver(messageId: string, body: string): Promise<void> {
  const signature = createHmac('sha256', SECRET).update(body).digest('hex');
  const answer = await request(receiver, {
    method: 'POST',
    dispatcher,
    headers: { 'x-bus-message-id': messageId, 'x-bus-signature': signature },
    body,
  });
  await answer.body.dump();
}
