import { randomBytes, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import type { Hex } from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { requestAccountDeletion } from '../../src/accounts/accounts/account-deletions.js';
import { UnavailableError } from '../../src/lib/errors.js';
import { requestMail } from '../../src/accounts/mail/request-mail.js';
import { ChainPayments } from '../../src/money/payments/chain-payments.js';
import { SwarmStore } from '../../src/swarms/swarm-store.js';
import { PaymentStore } from '../../src/money/payments/payment-store.js';
import {
  accountDeletions,
  agentEmails,
  busMessages,
  busSignatures,
  clones,
  mails,
  payments,
  paymentSessions,
  royaltySplits,
  securityEvents,
  swarms,
  verifications,
} from '../../worker/handed-rows.js';
import { handOver, handOverPeriodically, type Handed } from '../../worker/hand-over.js';
import type { RowRuns } from '../../temporal/row-runs.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { newUser, testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const PAST = '2026-01-01T00:00:00Z';

const away = () => Promise.reject(new UnavailableError('Temporal is unavailable'));

type Start = (id: string) => Promise<boolean>;

interface Kind {
  readonly kind: string;
  readonly table: Handed['table'];
  readonly handed: (start: Start) => Handed;
  /** Inserts a pending row. @returns the id with which its run is started. */
  readonly written: () => Promise<string>;
  readonly againSeconds: number;
}

const sessionsHanded = (start: Start) =>
  paymentSessions({
    openings: { step: async (id) => void (await start(id)) },
    settlements: { step: () => Promise.resolve() },
  });

const KINDS: readonly Kind[] = [
  {
    kind: 'a mail',
    table: 'mails',
    handed: (start) => mails(database.db, { start }),
    async written() {
      const address = `${randomUUID()}@example.com`;
      const request = { kind: 'reset-password', address } as const;
      await database.db.asPlatform().transaction((db) => requestMail(db, request));
      const [row] = await owner(`SELECT id FROM mails WHERE address = '${address}'`);
      return String(row?.id);
    },
    againSeconds: 300,
  },
  {
    kind: 'a security event',
    table: 'risc_events',
    handed: (start) => securityEvents({ start }),
    async written() {
      const id = randomUUID();
      await owner(
        `INSERT INTO risc_events (id, issuer, matching, events, happened_at)
         VALUES ('${id}', 'https://idp.example', 'subject', '[]', now())`,
      );
      return id;
    },
    againSeconds: 60,
  },
  {
    kind: 'the deletion of an account',
    table: 'account_deletions',
    handed: (start) => accountDeletions({ start }),
    async written() {
      const id = await newUser(database);
      const origin = { address: '192.0.2.1', requestId: randomUUID() };
      await requestAccountDeletion(database.db, id, `${id}@example.com`, origin);
      return id;
    },
    againSeconds: 30,
  },
  {
    kind: 'a payment',
    table: 'payments',
    handed: (start) => payments(database.db, { wake: async (id) => void (await start(id)) }),
    async written() {
      const signer: Hex = `0x${randomBytes(20).toString('hex')}`;
      await askForPayment(signer);
      return `4217-${signer}`;
    },
    againSeconds: 60,
  },
  {
    kind: 'a payment session that is opened',
    table: 'payment_sessions',
    handed: sessionsHanded,
    written: () => newPaymentSession({ state: 'opening' }),
    againSeconds: 20,
  },
  {
    kind: 'a payment session of which something is to be settled',
    table: 'payment_sessions',
    handed: sessionsHanded,
    written: () =>
      newPaymentSession({
        state: 'active',
        opened_at: PAST,
        hold_expires_at: PAST,
        settlement_due_at: PAST,
      }),
    againSeconds: 20,
  },
  {
    kind: 'a clone',
    table: 'clones',
    handed: (start) => clones({ start }),
    async written() {
      const user = await newUser(database);
      await owner(insertSql('agents', ROWS.agents?.(user, 1) ?? {}));
      await owner(insertSql('clones', { ...ROWS.clones?.(user, 1), state: 'waiting' }));
      return `${user}-agent-1`;
    },
    againSeconds: 60,
  },
  {
    kind: 'a split',
    table: 'royalty_splits',
    handed: (start) => royaltySplits({ start }),
    async written() {
      const row = ROWS.royalty_splits?.(await newUser(database), 1) ?? {};
      await owner(insertSql('royalty_splits', { ...row, status: 'queued' }));
      return String(row.id);
    },
    againSeconds: 20,
  },
  {
    kind: 'a message of the bus',
    table: 'bus_messages',
    handed: (start) => busMessages({ start }),
    async written() {
      const user = await newUser(database);
      await owner(insertSql('agents', ROWS.agents?.(user, 1) ?? {}));
      const row = ROWS.bus_messages?.(user, 1) ?? {};
      await owner(insertSql('bus_messages', row));
      return String(row.id);
    },
    againSeconds: 300,
  },
  {
    kind: 'a verification of an agent',
    table: 'agent_verifications',
    handed: (start) => verifications({ start }),
    async written() {
      const user = await newUser(database);
      await owner(insertSql('agents', ROWS.agents?.(user, 1) ?? {}));
      const id = randomUUID();
      await owner(insertSql('agent_verifications', { ...ROWS.agent_verifications?.(user, 1), id }));
      return `${user}-agent-1`;
    },
    againSeconds: 20,
  },
  {
    kind: 'a swarm',
    table: 'swarms',
    handed: (start) =>
      swarms(new SwarmStore(database.db), {
        start: (id) => start(id),
        cancel: async (id) => void (await start(id)),
      }),
    async written() {
      const user = await newUser(database);
      const id = randomUUID();
      await owner(insertSql('swarms', { ...ROWS.swarms?.(user, 1), id, status: 'pending' }));
      await owner(`UPDATE swarms SET settled_at = NULL WHERE id = '${id}'`);
      return id;
    },
    againSeconds: 20,
  },
  {
    kind: 'a text of the bus that is to be signed',
    table: 'bus_signatures',
    handed: (start) => busSignatures({ step: async (id) => void (await start(id)) }),
    async written() {
      const user = await newUser(database);
      await owner(insertSql('agents', ROWS.agents?.(user, 1) ?? {}));
      const id = randomUUID();
      await owner(insertSql('bus_signatures', { ...ROWS.bus_signatures?.(user, 1), id }));
      return id;
    },
    againSeconds: 20,
  },
];

async function newPaymentSession(values: Readonly<Record<string, string>>): Promise<string> {
  const id = randomUUID();
  const { user_id, ...row } = ROWS.payment_sessions?.(id, 1) ?? {};
  await owner(insertSql('payment_sessions', { ...row, id, ...values }));
  return id;
}

const askForPayment = (signer: Hex) =>
  new ChainPayments(database.db).request(database.db.asPlatform(), {
    cause: randomUUID(),
    chainId: 4_217,
    signer,
    calls: [{ to: signer, data: '0x', value: 0n }],
  });

/** Returns a `start` function that records the ids of the runs started. */
function runs() {
  const started: string[] = [];
  const start: Start = (id) => Promise.resolve(started.push(id) > 0);
  return { started, start };
}

/** Hands rows over periodically, as a worker does, until `work` ends. */
async function whileHanding(handed: Handed, work: () => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const parts = { database: database.db, log: pino({ enabled: false }) };
  const handing = handOverPeriodically(parts, handed, ending.signal);
  try {
    await work();
  } finally {
    ending.abort();
    await handing;
  }
}

describe.each(KINDS)('$kind', ({ againSeconds, handed, table, written }) => {
  const pass = (start: Start) => handOver(database.db, handed(start));
  const later = (seconds: number) =>
    owner(`UPDATE ${table} SET due_at = due_at - interval '${seconds} seconds'`);
  afterEach(() => owner(`DELETE FROM ${table}`));

  test('a pending row is handed over by one pass, even if several passes overlap', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push(await written());
    const { started, start } = runs();
    await Promise.all([pass(start), pass(start), pass(start)]);
    expect(started.toSorted()).toEqual(ids.toSorted());
    expect(await pass(start)).toBe(0);
    expect(started).toHaveLength(20);
  });

  test('a row is handed over again after a while if it is still pending', async () => {
    const id = await written();
    const { started, start } = runs();
    await pass(start);
    await later(againSeconds - 5);
    await pass(start);
    expect(started).toEqual([id]);
    await later(10);
    await pass(start);
    expect(started).toEqual([id, id]);
  });

  test('the periodic pass hands a row over again if its start was lost', async () => {
    const id = await written();
    const { started, start } = runs();
    await whileHanding(handed(start), async () => {
      await expect.poll(() => started).toEqual([id]);
      // The started run has done no work.
      await later(againSeconds);
      await expect.poll(() => started).toEqual([id, id]);
    });
  });

  test('a row that cannot be handed over delays no other row and stays due', async () => {
    const [first, second] = [await written(), await written()];
    const { started, start } = runs();
    const handingOver = pass((id) => (id === first ? away() : start(id)));
    await expect(handingOver).rejects.toBeInstanceOf(UnavailableError);
    expect(started).toEqual([second]);
    await pass(start);
    expect(started).toEqual([second, first]);
  });

  test('the periodic pass hands a row over when Temporal is back', async () => {
    const id = await written();
    const { started, start } = runs();
    let tries = 0;
    const begin: Start = (each) => ((tries += 1) < 2 ? away() : start(each));
    await whileHanding(handed(begin), () => expect.poll(() => started).toEqual([id]));
  });

  test('a row is handed over even if its notification was lost', async () => {
    await owner(`ALTER TABLE ${table} DISABLE TRIGGER ${table}_told`);
    onTestFinished(async () => {
      await owner(`ALTER TABLE ${table} ENABLE TRIGGER ${table}_told`);
    });
    const { started, start } = runs();
    await whileHanding(handed(start), async () => {
      const id = await written();
      await expect.poll(() => started).toEqual([id]);
    });
  });
});

describe('owner of a run', () => {
  /** Returns the owner with which the only pending row is handed over. */
  async function ownerOf(handed: (start: RowRuns['start']) => Handed) {
    const owners: (string | undefined)[] = [];
    const start: RowRuns['start'] = (_, how) => Promise.resolve(owners.push(how?.owner) > 0);
    expect(await handOver(database.db, handed(start))).toBe(1);
    return owners[0];
  }
  const signedFor = () =>
    ownerOf((start) =>
      payments(database.db, { wake: async (id, of) => void (await start(id, { owner: of })) }),
    );
  afterEach(async () => {
    for (const table of ['payments', 'clones', 'royalty_splits']) {
      await owner(`DELETE FROM ${table}`);
    }
  });

  test('a clone or split is owned by the user of its agents', async () => {
    const user = await newUser(database);
    await owner(insertSql('agents', ROWS.agents?.(user, 1) ?? {}));
    await owner(insertSql('clones', { ...ROWS.clones?.(user, 1), state: 'waiting' }));
    expect(await ownerOf((start) => clones({ start }))).toBe(user);
    const split = ROWS.royalty_splits?.(user, 1) ?? {};
    await owner(insertSql('royalty_splits', { ...split, status: 'queued' }));
    expect(await ownerOf((start) => royaltySplits({ start }))).toBe(user);
  });

  test('an e-mail is owned by the user of its agent, which the run names', async () => {
    const user = await newUser(database);
    const agent = ROWS.agents?.(user, 1) ?? {};
    await owner(insertSql('agents', agent));
    await owner(insertSql('agent_emails', ROWS.agent_emails?.(user, 1) ?? {}));
    await owner(
      `UPDATE agent_emails SET status = 'received', settled_at = NULL, due_at = now()
        WHERE user_id = '${user}'`,
    );
    const started: unknown[] = [];
    const start: RowRuns['start'] = (_, how) => Promise.resolve(started.push(how) > 0);
    await handOver(database.db, agentEmails({ start }));
    expect(started).toEqual([{ owner: user, agentId: agent.id }]);
    await owner(`DELETE FROM agent_emails WHERE user_id = '${user}'`);
  });

  test('a signer is owned by the user of its wallet, and by none if the platform signs', async () => {
    const signer: Hex = `0x${randomBytes(20).toString('hex')}`;
    await askForPayment(signer);
    expect(await signedFor()).toBeUndefined();
    const user = await newUser(database);
    await owner(
      insertSql('wallets', {
        id: randomUUID(),
        user_id: user,
        kind: 'imported',
        address: signer,
        sealed_key: 'sealed',
        created_at: PAST,
      }),
    );
    await owner('UPDATE payments SET due_at = now()');
    expect(await signedFor()).toBe(user);
  });
});

test('new payments of a signer whose run is active wake it only after a moment', async () => {
  const claimed: Hex = `0x${'1'.repeat(40)}`;
  const other: Hex = `0x${'2'.repeat(40)}`;
  const woken: string[] = [];
  const wake = (signerId: string) => Promise.resolve(void woken.push(signerId));
  const handed = { ...payments(database.db, { wake }), patienceMs: 500 };
  await askForPayment(claimed);
  await whileHanding(handed, async () => {
    await new PaymentStore(database.db, { chainId: 4_217, address: claimed }).readQueue();
    await askForPayment(other);
    await expect.poll(() => woken).toEqual([`4217-${other}`]);
  });
});

test('a mail whose run has ended is settled, and one older than a day is given up', async () => {
  const [{ written } = KINDS[0] as Kind] = KINDS;
  const [ended, old] = [await written(), await written()];
  await owner(`UPDATE mails SET requested_at = now() - interval '25 hours' WHERE id = '${old}'`);
  const asked: string[] = [];
  const hadOne = (id: string) => Promise.resolve(asked.push(id) < 0);
  await handOver(database.db, mails(database.db, { start: hadOne }));
  expect(asked).toEqual([ended]);
  const [row] = await owner(`SELECT settled_at FROM mails WHERE id = '${ended}'`);
  expect(row).toEqual({ settled_at: expect.any(Date) });
});
