import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  configuredMail,
  smtpTransport,
} from '../../../src/accounts/mail-delivery/mail-transport.js';
import { messageOf } from '../../../src/accounts/mail/messages.js';
import { loadSettings } from '../../../src/settings.js';
import { freePort } from '../../../dev/ports.js';
import { startMailbox, tokenIn, type Mailbox } from '../../../dev/accounts/mailbox.js';
import { keptLog, testEnvironment } from '../../support/platform-environment.js';

const WEB_URL = 'https://platform.example';
const TOKEN = 'x'.repeat(43);
const MESSAGE = messageOf('reset-password', WEB_URL, TOKEN);
const TO = 'ada@example.com';

let mailbox: Mailbox;
beforeAll(async () => {
  mailbox = await startMailbox();
});
afterAll(() => mailbox?.close());

const mailSettings = (env: Record<string, string>) =>
  loadSettings(testEnvironment({ DATABASE_URL: 'postgres://nobody@127.0.0.1/nothing' }, env)).mail;

test('sends a mail to one address as plain text and HTML with the same link', async () => {
  const { log, lines } = keptLog();
  const settings = mailSettings({ SMTP_URL: mailbox.url });
  await configuredMail(settings, WEB_URL, log).send(TO, MESSAGE);
  const received = await mailbox.mailTo(TO);
  expect(received.from).toBe('no-reply@platform.example');
  expect(received.raw).toContain('Subject: Set a new password');
  expect(received.raw).toMatch(/Content-Type: multipart\/alternative/);
  expect(tokenIn(received)).toBe(TOKEN);
  const link = `${WEB_URL}/reset-password?token=${TOKEN}`;
  expect(received.text).toContain(`\n${link}\n`);
  expect(received.html).toContain(`<a href="${link}">${link}</a>`);
  expect(lines).toEqual([]);
});

test('sends mails from the address in MAIL_FROM', async () => {
  const settings = mailSettings({
    SMTP_URL: mailbox.url,
    MAIL_FROM: 'The platform <us@mail.test>',
  });
  await configuredMail(settings, WEB_URL, keptLog().log).send('from@example.com', MESSAGE);
  const { from, raw } = await mailbox.mailTo('from@example.com');
  expect(from).toBe('us@mail.test');
  expect(raw).toContain('From: The platform <us@mail.test>');
  expect(() => mailSettings({ MAIL_FROM: 'nobody' })).toThrow('MAIL_FROM must be an address');
});

test.each([
  [421, false],
  [451, false],
  [550, true],
  [554, true],
])(
  "classifies the server's answer %i as a temporary or permanent failure",
  async (status, isFinal) => {
    mailbox.refusals.push(status);
    const sending = smtpTransport(mailbox.url, 'us@mail.test').send(TO, MESSAGE);
    await expect(sending).rejects.toMatchObject({
      name: 'MailServerError',
      message: `The mail server answered with status ${status}`,
      isFinal,
    });
  },
);

test('reports an unavailable or refusing server without the password', async () => {
  const nowhere = smtpTransport(`smtp://127.0.0.1:${await freePort()}`, 'us@mail.test');
  await expect(nowhere.send(TO, MESSAGE)).rejects.toMatchObject({ isFinal: false });
  const wrong = mailbox.url.replace(/:[^:]+@/, ':not-this-one@');
  const error: unknown = await smtpTransport(wrong, 'us@mail.test')
    .send(TO, MESSAGE)
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ isFinal: true });
  expect(String((error as Error).stack)).not.toContain('not-this-one');
  expect((error as Error).cause).toBeUndefined();
});

test('requires TLS beyond this machine unless it is switched off', { tags: 'attack' }, async () => {
  // Another spelling of the loopback address, not recognised as loopback.
  const far = mailbox.url.replace('127.0.0.1', '127.1');
  const before = mailbox.mails.length;
  const sending = smtpTransport(far, 'us@mail.test').send(TO, MESSAGE);
  await expect(sending).rejects.toMatchObject({ name: 'MailServerError' });
  expect(mailbox.mails).toHaveLength(before);
  await smtpTransport(`${far}?requireTLS=false`, 'us@mail.test').send(TO, MESSAGE);
  expect(mailbox.mails).toHaveLength(before + 1);
});

test('shows the links of mails that are only logged', async () => {
  const notices: string[] = [];
  const { log } = keptLog();
  const report = (notice: string) => void notices.push(notice);
  const transport = configuredMail(mailSettings({}), WEB_URL, log, report);
  await transport.send(TO, MESSAGE);
  await transport.send(TO, messageOf('password-was-reset', WEB_URL, undefined));
  expect(notices).toEqual([
    `A mail to ${TO} is not sent, because SMTP_URL is not set. ` +
      `Set a new password: ${WEB_URL}/reset-password?token=${TOKEN}`,
  ]);
});

test('logs mails without a mail server, except in production', async () => {
  const { log, lines } = keptLog();
  const settings = mailSettings({});
  expect(settings.available).toBe(true);
  await configuredMail(settings, WEB_URL, log).send(TO, MESSAGE);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    mail: { to: TO, subject: 'Set a new password', text: expect.stringContaining(TOKEN) },
  });
  const strict = { ...settings, available: false };
  await expect(configuredMail(strict, WEB_URL, log).send(TO, MESSAGE)).rejects.toMatchObject({
    isFinal: false,
  });
  expect(lines).toHaveLength(1);
});
