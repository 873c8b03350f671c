import { randomUUID } from 'node:crypto';
import { WorkflowFailedError } from '@temporalio/client';
import { ActivityFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMailActivities } from '../../activities/mail.js';
import { MailServerError } from '../../src/accounts/mail-delivery/mail-transport.js';
import { sendMailId } from '../../workflows/ids.js';
import { mailRun } from './support/mail-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

const away = () => new MailServerError('answered with status 451', false);
const hours = (ms: number) => ms / 3_600_000;

test('a mail that the server accepts later is sent once', async () => {
  let asked = 0;
  const { result } = await mailRun(
    lab.environment,
    bundle,
    createMailActivities({
      send: () => (++asked < 20 ? Promise.reject(away()) : Promise.resolve('sent')),
    }),
  );
  expect(result).toBe('sent');
  expect(asked).toBe(20);
});

test('a mail is abandoned after the server has rejected it for a day', async () => {
  const mailId = randomUUID();
  let asked = 0;
  const run = mailRun(
    lab.environment,
    bundle,
    createMailActivities({
      send() {
        asked++;
        return Promise.reject(away());
      },
    }),
    mailId,
  );
  const error: unknown = await run.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WorkflowFailedError);
  const { cause } = error as WorkflowFailedError;
  expect(cause).toBeInstanceOf(ActivityFailure);
  expect((cause as ActivityFailure).cause?.message).toContain(
    'The mail server answered with status 451',
  );
  const handle = lab.environment.client.workflow.getHandle(sendMailId(mailId));
  const { startTime, closeTime } = await handle.describe();
  const took = hours(Number(closeTime) - startTime.getTime());
  expect(took).toBeGreaterThan(23);
  expect(took).toBeLessThan(25);
  // One attempt every 15 minutes, after some faster ones at the beginning.
  expect(asked).toBeGreaterThan(90);
  expect(asked).toBeLessThan(110);
});

test.each(['nobody', 'refused'] as const)(
  'a mail with the result %s is not sent again',
  async (end) => {
    let asked = 0;
    const send = () => {
      asked++;
      return Promise.resolve(end);
    };
    const { result } = await mailRun(lab.environment, bundle, createMailActivities({ send }));
    expect(result).toBe(end);
    expect(asked).toBe(1);
  },
);
