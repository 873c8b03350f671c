import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startMailbox } from '../../dev/accounts/mailbox.js';
import { freePort } from '../../dev/ports.js';
import { examine } from '../../src/doctor/check.js';
import { mailCheck } from '../../src/doctor/mail-check.js';

async function findingsOf(env: Readonly<Record<string, string>>): Promise<string[]> {
  const findings = await examine([mailCheck], env);
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test('accepts a mail server and sends nothing, and names a refused sign-in without the password', async () => {
  const mailbox = await startMailbox();
  onTestFinished(() => mailbox.close());
  expect(await findingsOf({ SMTP_URL: mailbox.url })).toEqual([
    expect.stringMatching(/^ok: The mail server at 127\.0\.0\.1:\d+ accepts/),
  ]);
  const wrong = mailbox.url.replace(/:[^:]+@/, ':not-this-one@');
  const [refused] = await findingsOf({ SMTP_URL: wrong });
  expect(refused).toMatch(/^failure: The mail server answered with status 535 .* correct SMTP_URL/);
  expect(refused).not.toContain('not-this-one');
});

test('names an unreachable mail server, and one that never answers', async () => {
  const silent = createServer((socket) => void socket.on('error', () => undefined));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo; // never a string for a TCP listener
  for (const at of [port, await freePort()]) {
    expect(await findingsOf({ SMTP_URL: `smtp://127.0.0.1:${at}` })).toEqual([
      `failure: The mail server is unreachable or did not answer in time (127.0.0.1:${at}): start it, or ` +
        'correct SMTP_URL.',
    ]);
  }
});

test('warns of a production without mail', async () => {
  expect(await findingsOf({})).toEqual([expect.stringMatching(/^ok: Mails are logged/)]);
  expect(await findingsOf({ NODE_ENV: 'production' })).toEqual([
    expect.stringMatching(/^warning: No mail is sent.*set SMTP_URL/),
  ]);
});
