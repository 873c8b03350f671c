import { getAddress } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../../api/http/server.js';
import { createBackend } from '../../../api/backend/backend.js';
import { queryRows } from '../../platform/database/catalog.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { paymentLab, type Payer, type PaymentLab } from './support.js';

const KEY = 'the internal key';

let lab: PaymentLab;
let payer: Payer;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;
beforeAll(async () => {
  lab = await paymentLab();
  alone = await databaseAlone(lab.database, undefined, { INTERNAL_API_KEY: KEY });
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
  payer = await lab.payer({ feeBumpAfterMs: 0 });
});
afterAll(async () => {
  await backend?.close();
  await alone?.close();
  await lab?.close();
});

const list = (query = '', headers = {}) =>
  call(backend.url, 'GET', `/api/underground/payments${query}`, {
    headers: { authorization: `Bearer ${KEY}`, ...headers },
  });

test('lists queued, in-flight and done payments with all hashes to operators, page by page', async () => {
  const first = await payer.ask();
  for (let n = 0; n < 5; n++) await payer.signer.step();
  await lab.rpc('evm_setAutomine', false);
  const second = await payer.ask();
  for (let n = 0; n < 3; n++) await payer.signer.step();
  const third = await payer.ask();

  const { body } = await list();
  expect(body.payments.map(({ cause }: { cause: string }) => cause)).toEqual(
    [third, second, first].map(({ cause }) => cause),
  );
  const [waiting, onItsWay, done] = body.payments;
  expect(waiting).toMatchObject({ state: 'queued', nonce: null, hash: null, transactions: [] });
  expect(onItsWay).toMatchObject({
    state: 'broadcast',
    signer: getAddress(payer.address),
    nonce: '1',
  });
  expect(onItsWay.transactions.length).toBeGreaterThan(1);
  expect(onItsWay.transactions.at(-1)).toMatchObject({ hash: onItsWay.hash, active: true });
  expect(onItsWay.transactions[0]).toMatchObject({ nonce: '1', active: false, purpose: 'pay' });
  expect(done).toMatchObject({ state: 'confirmed', block: expect.any(Number), failure: null });

  const queued = await list('?state=queued');
  expect(queued.body.payments).toMatchObject([{ cause: third.cause }]);
  const page = await list('?limit=1');
  const [, next = ''] = /<(.*)>/.exec(page.headers.get('link') ?? '') ?? [];
  const after = await list(new URL(next, backend.url).search);
  expect(after.body.payments).toMatchObject([{ cause: second.cause }]);

  await queryRows(
    lab.database.ownerUrl,
    `UPDATE payments SET settled_at = now() - interval '1 hour' + interval '10 seconds'
      WHERE settled_at IS NOT NULL;
     UPDATE payments SET requested_at = now() - interval '1 hour'`,
  );
  const { body: later } = await list();
  for (const { ageSeconds, cause } of later.payments) {
    if (cause === first.cause) expect(ageSeconds).toBe(10);
    else expect(ageSeconds).toBeGreaterThanOrEqual(3_600);
  }
});

test('lists payments to operators only', async () => {
  const strangers = [{ authorization: 'Bearer another' }, { 'x-user-id': 'somebody' }];
  for (const headers of strangers) {
    expect([401, 403]).toContain((await list('', headers)).status);
  }
  expect((await list('?state=all')).status).toBe(400);
});
