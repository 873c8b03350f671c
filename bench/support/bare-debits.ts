// The baseline for debits: Koa with the same two updates of a row in PostgreSQL for each debit. A
// separate program: `node bare-debits.js <owner's database address> <node's address> <chain id>`, which
// creates its table, receives the accounts, and sends its port to its parent.
import Koa from 'koa';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import pg from 'pg';
import type { Hex } from 'viem';
import { ChainNode } from '../../src/money/chain/chain-node.js';

/** As many as the platform's own APIs have (src/platform/database/settings.ts). */
const MAX_CONNECTIONS = 20;

const PRICE = 1_000;
const DEPOSIT = 1_000_000_000_000;

/** Two transactions, because the sold content is fetched between them. */
const HOLD = {
  name: 'hold',
  text: `UPDATE bare_accounts SET held = held + $2
          WHERE id = $1 AND deposit - spent - held >= $2 RETURNING id`,
};
const POST = {
  name: 'post',
  text: `UPDATE bare_accounts SET held = held - $2, spent = spent + $2
          WHERE id = $1 RETURNING deposit - spent - held AS remaining`,
};

const [ownerUrl = '', rpcUrl = '', chainId = '', accounts = '1'] = process.argv.slice(2);
const node = new ChainNode({ chainId: Number(chainId), url: rpcUrl });
const pool = new pg.Pool({ connectionString: ownerUrl, max: MAX_CONNECTIONS });
await pool.query(
  `CREATE TABLE bare_accounts (id integer PRIMARY KEY, deposit numeric NOT NULL,
                               held numeric NOT NULL DEFAULT 0, spent numeric NOT NULL DEFAULT 0)`,
);
await pool.query(
  `INSERT INTO bare_accounts (id, deposit) SELECT n, ${DEPOSIT} FROM generate_series(1, $1) AS n`,
  [Number(accounts)],
);

const app = new Koa();
app.use(async (ctx) => {
  const { hash } = (await json(ctx.req)) as { hash: Hex }; // the benchmark sends nothing else
  const values = [ctx.get('x-account'), PRICE];
  const { rowCount } = await pool.query({ ...HOLD, values });
  if (rowCount === 0) return ctx.throw(402);
  const result = ctx.path === '/served' ? await node.receipt(hash) : { hash };
  const { rows } = await pool.query<{ remaining: string }>({ ...POST, values });
  ctx.body = JSON.stringify({ result, remaining: rows[0]?.remaining }, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());
