// @module-tag attack
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  createEmailActivities,
  createEmailRecordActivities,
  createEmailTurnActivities,
} from '../../activities/email.js';
import { OwnerTurns } from '../../src/agents/chat/owner-turns.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { emailSite, type EmailOwner, type EmailSite } from '../agents/email/email-site.js';
import { say } from '../../dev/email/resend-stand-in.js';
import { saying, SECRETS, TaskGateway } from '../agents/tasks/task-lab.js';
import { queryRows } from '../platform/database/catalog.js';
import { emailRun } from './support/email-run.js';
import { bundleWorkflows, WorkflowLab } from './support/workflow-lab.js';

const QUESTION = 'Is the shop by the swordfish open?';
const ANSWER = 'Yes, until the swordfish is sold';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
let site: EmailSite;
let gateway: TaskGateway;
let owner: EmailOwner;
let port: number;

beforeAll(async () => {
  [lab, site, bundle] = await Promise.all([WorkflowLab.open(), emailSite(), bundleWorkflows()]);
  gateway = new TaskGateway();
  port = await gateway.listen();
});
afterAll(async () => {
  gateway?.close();
  await lab?.close();
  await site?.close();
});
beforeEach(async () => {
  await queryRows(site.database.ownerUrl, 'DELETE FROM agents');
  owner = await site.newOwner({ port });
  gateway.asked.length = 0;
  gateway.answer = saying(ANSWER);
  site.resend.fault = () => false;
  site.resend.loss = () => false;
  site.resend.sent.length = 0;
  site.resend.calls.length = 0;
});

/** Delivers a mail, and returns its row's id. */
async function delivered(mail?: Parameters<EmailOwner['write']>[0]): Promise<string> {
  const answer = await site.deliver(owner.write({ text: QUESTION, ...mail }));
  expect(answer.body).toEqual({ received: true, handled: true });
  const [row] = await site.rows(owner);
  if (!row) throw new TypeError('the mail was not stored');
  return row.id;
}

/** Runs a mail's workflow; `attempted` is called after each attempt to send the question to the agent. */
function run(id: string, { attempted = () => Promise.resolve(), isHostAway = false } = {}) {
  const { emails } = site;
  const turns = new OwnerTurns(site.database.db, SECRETS);
  const ask: OwnerTurns['ask'] = async (...turn) => {
    const end = await turns.ask(...turn);
    await attempted();
    return end;
  };
  const activities = {
    records: createEmailRecordActivities(emails, turns),
    calls: createEmailActivities(emails),
    ...(!isHostAway && {
      host: createEmailTurnActivities({ emails, turns: { ask }, limiters: hostLimiters(4) }),
    }),
  };
  return emailRun(lab.environment, bundle, activities, id);
}

const posts = () => site.resend.calls.filter((call) => call.startsWith('POST'));

const hoursOf = async (workflowId: string) => {
  const handle = lab.environment.client.workflow.getHandle(workflowId);
  const { closeTime, startTime } = await handle.describe();
  return (Number(closeTime) - startTime.getTime()) / 3_600_000;
};

test('a mail is a turn of the agent, and the answer a mail in its thread', async () => {
  const id = await delivered();
  expect((await run(id)).result).toBe('answered');
  const [row] = await site.rows(owner);
  expect(gateway.asked).toMatchObject([
    {
      user: row?.conversation,
      messages: [{ role: 'user', content: `Subject: A question\n\n${QUESTION}` }],
    },
  ]);
  expect(site.resend.sent).toMatchObject([{ to: [owner.address], text: ANSWER }]);
  // A run that is started again finds that all is done.
  expect((await run(id)).result).toBe('answered');
  expect([gateway.asked.length, site.resend.sent.length]).toEqual([1, 1]);
});

test('an answer is retried under one key while the provider fails, and arrives once', async () => {
  let attempts = 0;
  // The first answer arrives, but the provider's own answer is lost; then the provider fails.
  site.resend.loss = (response) => {
    attempts++;
    if (attempts > 12) return false;
    if (attempts % 2 === 1) response.destroy();
    else say(response, 500, {});
    return true;
  };
  const id = await delivered();
  const { result, workflowId } = await run(id);
  expect([result, attempts]).toEqual(['answered', 13]);
  expect(new Set(posts())).toEqual(new Set([`POST /emails email-${id}`]));
  expect([gateway.asked.length, site.resend.sent.length]).toEqual([1, 1]);
  expect(await hoursOf(workflowId)).toBeGreaterThan(0.2);
});

test('an answer that is never acknowledged is given up within the day of its key', async () => {
  site.resend.loss = (response) => {
    response.destroy();
    return true;
  };
  const id = await delivered();
  const { result, workflowId } = await run(id);
  expect(result).toBe('failed');
  expect(await site.rows(owner)).toMatchObject([
    { status: 'failed', reason: expect.stringContaining('may have been sent') },
  ]);
  expect(site.resend.sent).toHaveLength(1);
  const hours = await hoursOf(workflowId);
  expect(hours).toBeGreaterThan(19);
  expect(hours).toBeLessThan(23);
});

test('a mail that the provider does not return for hours fails, and no question is sent', async () => {
  site.resend.fault = (response) => {
    say(response, 503, {});
    return true;
  };
  const id = await delivered();
  expect((await run(id)).result).toBe('failed');
  expect([gateway.asked, posts()]).toEqual([[], []]);
});

test('a turn whose answer is lost has failed, and is not repeated', async () => {
  gateway.answer = (response) => response.destroy();
  const id = await delivered();
  expect((await run(id)).result).toBe('failed');
  gateway.answer = saying(ANSWER);
  expect((await run(id)).result).toBe('failed');
  expect([gateway.asked.length, posts()]).toEqual([1, []]);
});

const setAgent = (change: string) =>
  queryRows(site.database.ownerUrl, `UPDATE agents SET ${change} WHERE id = '${owner.agentId}'`);

test.each([
  ['starts', "status = 'pending'", "status = 'active'"],
  ['is repaired', "status = 'error', port = NULL", "status = 'active', port = PORT"],
  ['accepts no connection', 'port = 1', 'port = PORT'],
])(
  'a mail waits for an agent that %s, and is then sent to the agent once',
  async (_, away, back) => {
    await setAgent(away);
    const id = await delivered();
    let attempts = 0;
    const attempted = async () => {
      if (++attempts === 5) await setAgent(back.replace('PORT', String(port)));
    };
    const { result, workflowId } = await run(id, { attempted });
    expect([result, attempts]).toEqual(['answered', 6]);
    expect([gateway.asked.length, site.resend.sent.length]).toEqual([1, 1]);
    expect(await hoursOf(workflowId)).toBeGreaterThan(5 / 60 - 0.01);
  },
);

test('a mail is skipped when its agent does not run within the hour', async () => {
  await setAgent("status = 'pending'");
  const { result, workflowId } = await run(await delivered());
  expect(result).toBe('skipped');
  expect(await site.rows(owner)).toMatchObject([{ reason: 'The agent is not running' }]);
  const hours = await hoursOf(workflowId);
  expect(hours).toBeGreaterThan(0.8);
  expect(hours).toBeLessThan(1.1);
});

test('a mail does not wait for a stopped agent', async () => {
  await setAgent("desired = 'stopped', status = 'stopped'");
  let attempts = 0;
  const attempted = () => Promise.resolve(void attempts++);
  expect((await run(await delivered(), { attempted })).result).toBe('skipped');
  expect(attempts).toBe(1);
});

test('a forged mail leads to no question', async () => {
  const id = await delivered({ headers: {} });
  expect((await run(id)).result).toBe('refused');
  expect([gateway.asked, posts()]).toEqual([[], []]);
});

test('a mail ends with its deleted agent', async () => {
  const id = await delivered();
  await queryRows(site.database.ownerUrl, 'DELETE FROM agents');
  expect((await run(id)).result).toBe('gone');
});

test('the history has no text, address or key', async () => {
  const id = await delivered({ subject: 'About the swordfish' });
  const { workflowId } = await run(id);
  const handle = lab.environment.client.workflow.getHandle(workflowId);
  const history = JSON.stringify(await handle.fetchHistory(), (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : value,
  );
  expect(history).toContain(id);
  for (const secret of ['swordfish', owner.address, 'example.com', site.resend.apiKey]) {
    expect(history).not.toContain(secret);
  }
});

test('a turn that its host does not accept in time is skipped', async () => {
  bundle = await bundleWorkflows({ shortTimeouts: true });
  const id = await delivered();
  expect((await run(id, { isHostAway: true })).result).toBe('skipped');
  expect(await site.rows(owner)).toMatchObject([
    { status: 'skipped', reason: "The agent's host could not be reached in time" },
  ]);
  expect(posts()).toEqual([]);
});
