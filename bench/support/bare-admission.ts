// The baseline for admissions: Koa with one select and one hash. A separate program: `node bare-admission.js
// <owner's database address>`, which sends its port to its parent.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Koa from 'koa';
import pg from 'pg';

const [ownerUrl = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: ownerUrl, max: 20 });
// The owner of the tables has access to all rows.
const SELECT = {
  name: 'select',
  text: 'SELECT user_id, password_hash FROM radio_streams WHERE id = $1',
};

const app = new Koa();
app.use(async (ctx) => {
  const form = new URLSearchParams(await text(ctx.req));
  const id = form.get('mount')?.slice(1, -4);
  const { rows } = await pool.query<{ password_hash: string }>({ ...SELECT, values: [id] });
  const shown = createHash('sha256')
    .update(form.get('pass') ?? '')
    .digest('hex');
  const [row] = rows;
  const isRight = row && timingSafeEqual(Buffer.from(row.password_hash), Buffer.from(shown));
  ctx.status = isRight ? 200 : 403;
  ctx.body = '';
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());
