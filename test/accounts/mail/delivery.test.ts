import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWeb } from '../../../api/web/web.js';
import type { Listening } from '../../../api/http/server.js';
import { mailRuns } from '../../../temporal/row-runs.js';
import { sendMailId } from '../../../workflows/ids.js';
import { queryRows } from '../../platform/database/catalog.js';
import { startAccountWorkers } from '../../support/account-workers.js';
import { databaseAlone } from '../../support/dependencies.js';
import { call } from '../../support/http.js';
import { textsOfHistories } from '../../support/histories.js';
import { startMailbox, tokenIn, type Mailbox } from '../../../dev/accounts/mailbox.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testTemporal, workerLog, type TestTemporal } from '../../support/temporal.js';

const PASSWORD = 'an-old-password';
const { log, lines } = keptLog();

let database: TestDatabase;
let temporal: TestTemporal;
let mailbox: Mailbox;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let stopWorkers = () => Promise.resolve();

beforeAll(async () => {
  [database, temporal, mailbox] = await Promise.all([
    testDatabase(),
    testTemporal(),
    startMailbox(),
  ]);
  alone = await databaseAlone(database, log, { SMTP_URL: mailbox.url });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await stopWorkers();
  await web?.close();
  await alone?.close();
  await mailbox?.close();
  await temporal?.close();
  await database?.close();
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);
const ask = (method: string, path: string, body?: unknown, cookie?: string) =>
  call(web.url, method, path, { body, headers: cookie === undefined ? {} : { cookie } });
const newEmail = () => `${randomUUID()}@example.com`;
const register = (email: string) => ask('POST', '/api/register', { email, password: PASSWORD });
const forgot = (email: string) => ask('POST', '/api/auth/forgot-password', { email });

/** Returns the id of the pending mail to an address. */
async function waitingFor(address: string): Promise<string> {
  const [row] = await owner(`SELECT id FROM mails WHERE address = '${address}'`);
  return String(row?.id);
}

const settled = async (id: string) => {
  const [row] = await owner(`SELECT settled_at IS NOT NULL AS done FROM mails WHERE id = '${id}'`);
  return row?.done;
};

describe('mail delivery by a worker', () => {
  test('sends a mail requested before the worker started, with a working link', async () => {
    const email = newEmail();
    await register(email);
    await web.close();
    stopWorkers = await startAccountWorkers({
      settings: alone.dependencies.settings,
      database: database.db,
      temporal,
      log,
    });
    web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
    const link = await mailbox.mailTo(email);
    const { headers } = await ask('POST', '/api/auth/login', { email, password: PASSWORD });
    const cookie = headers.get('set-cookie')?.split(';')[0];
    const verified = await ask('POST', '/api/auth/verify-email', { token: tokenIn(link) }, cookie);
    expect(verified.body).toEqual({ ok: true, email });

    await forgot(email);
    const token = tokenIn(await mailbox.mailTo(email, 2));
    const reset = await ask('POST', '/api/auth/reset-password', {
      token,
      password: `new ${randomUUID()}`,
    });
    expect(reset.body).toEqual({ ok: true });
    expect((await mailbox.mailTo(email, 3)).raw).toContain('Subject: Your password was reset');
  });

  test(
    'keeps tokens out of histories, rows and logs, and addresses out of histories and logs',
    { tags: 'attack' },
    async () => {
      const email = newEmail();
      await register(email);
      const id = await waitingFor(email);
      const token = tokenIn(await mailbox.mailTo(email));
      const run = temporal.client.workflow.getHandle(sendMailId(id));
      expect(await run.result()).toBe('sent');
      // A run is listed shortly after its start.
      let texts: readonly string[] = [];
      const listed = async () => (
        ({ texts } = await textsOfHistories(temporal.client)),
        texts.join()
      );
      await expect.poll(listed).toContain(id);
      const kept = [...texts, ...lines, ...workerLog].join('\n');
      expect(kept).toContain(id);
      expect(kept).not.toContain(token);
      expect(kept).not.toContain(email);
      const rows = await owner(
        `SELECT row_to_json(m)::text AS row FROM mails m
        UNION ALL SELECT row_to_json(t)::text FROM mail_tokens t`,
      );
      expect(JSON.stringify(rows)).toContain(id);
      expect(JSON.stringify(rows)).not.toContain(token);
    },
  );

  test('runs a mail to an unknown address like any other', { tags: 'attack' }, async () => {
    const email = newEmail();
    await forgot(email);
    const id = await waitingFor(email);
    const run = temporal.client.workflow.getHandle(sendMailId(id));
    await expect.poll(() => settled(id)).toBe(true);
    expect(await run.result()).toBe('nobody');
    expect(mailbox.mails.filter(({ to }) => to === email)).toEqual([]);
  });

  test('settles a mail that is permanently refused', async () => {
    const email = newEmail();
    mailbox.refusals.push(550);
    await register(email);
    const id = await waitingFor(email);
    await expect.poll(() => settled(id)).toBe(true);
    expect(await temporal.client.workflow.getHandle(sendMailId(id)).result()).toBe('refused');
    expect(mailbox.mails.filter(({ to }) => to === email)).toEqual([]);
  });

  test('does not restart a run that has ended', async () => {
    const runs = mailRuns(temporal.client);
    const id = randomUUID();
    expect(await runs.start(id)).toBe(true);
    await temporal.client.workflow.getHandle(sendMailId(id)).result();
    expect(await runs.start(id)).toBe(false);
  });
});
