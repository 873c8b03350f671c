import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { emailRuns } from '../../../temporal/row-runs.js';
import { agentEmails } from '../../../worker/handed-rows.js';
import { handOver } from '../../../worker/hand-over.js';
import { queryRows } from '../../platform/database/catalog.js';
import { Random } from '../../support/random.js';
import { testEnvironment } from '../../support/platform-environment.js';
import { testTemporal, type TestTemporal } from '../../support/temporal.js';
import { saying, TASK_HOST, TaskGateway } from '../tasks/task-lab.js';
import { emailSite, type EmailSite } from './email-site.js';
import { say } from '../../../dev/email/resend-stand-in.js';

const PROGRAM = fileURLToPath(new URL('email-worker.mjs', import.meta.url));

const ROUNDS = Number(process.env.EMAIL_ROUNDS ?? 2);
const MAILS = 12;
const KILLS = 4;

let site: EmailSite;
let temporal: TestTemporal;
let gateway: TaskGateway;
let port: number;

beforeAll(async () => {
  [site, temporal] = await Promise.all([emailSite(), testTemporal()]);
  gateway = new TaskGateway();
  port = await gateway.listen();
});
afterAll(async () => {
  gateway?.close();
  await temporal?.close();
  await site?.close();
});

async function startWorker(): Promise<ChildProcess> {
  const { address, namespace } = temporal;
  const env = testEnvironment({ DATABASE_URL: site.database.url, ...site.resend.env });
  const child = fork(PROGRAM, [address, namespace, TASK_HOST], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

async function kill(worker: ChildProcess): Promise<void> {
  worker.kill('SIGKILL');
  await once(worker, 'exit');
}

const conversationsAsked = () => (gateway.asked as { user: string }[]).map(({ user }) => user);

test.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))(
  'kills of the worker, round %i: nobody is asked or answered twice, and every mail ends',
  async (round) => {
    const random = new Random(round);
    await queryRows(site.database.ownerUrl, 'DELETE FROM agents');
    gateway.asked.length = 0;
    site.resend.sent.length = 0;
    const slowly = (work: () => void) => void delay(random.below(1_500)).then(work);
    gateway.answer = (response) => slowly(() => saying('Yes, it is')(response));
    // One in three answers is lost: the mail is sent, and the call fails.
    site.resend.loss = (response) => {
      if (!random.isOneIn(3)) return false;
      slowly(() => response.destroy());
      return true;
    };
    site.resend.fault = (response) => {
      if (!random.isOneIn(6)) return false;
      say(response, 503, {});
      return true;
    };
    const owner = await site.newOwner({ port });
    for (let mail = 0; mail < MAILS; mail++) await site.deliver(owner.write());
    await handOver(site.database.db, agentEmails(emailRuns(temporal.client)));
    for (let kills = 0; kills < KILLS; kills++) {
      const worker = await startWorker();
      await delay(300 + random.below(2_000));
      await kill(worker);
    }
    const last = await startWorker();
    const open = async () =>
      (await site.rows(owner)).filter(({ status }) =>
        ['received', 'asking', 'answering'].includes(status),
      ).length;
    await expect.poll(open, { timeout: 150_000, interval: 500 }).toBe(0);
    await kill(last);

    const asked = conversationsAsked();
    expect(new Set(asked).size).toBe(asked.length);
    const answered = site.resend.sent.map(({ headers }) => headers['In-Reply-To']);
    expect(new Set(answered).size).toBe(answered.length);
    const rows = await site.rows(owner);
    expect(rows).toHaveLength(MAILS);
    const ended = (end: string) => rows.filter(({ status }) => status === end);
    expect(ended('answered')).toHaveLength(answered.length);
    const lost = 'The answer was lost when the platform restarted. The agent is not asked again';
    expect(ended('failed').filter(({ reason }) => reason !== lost)).toEqual([]);
    expect(ended('answered').length + ended('failed').length).toBe(MAILS);
  },
  240_000,
);
