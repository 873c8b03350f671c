// @module-tag attack
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { setResetMailBlocks } from '../../../src/accounts/accounts/reset-mail-blocks.js';
import { EmailEvents } from '../../../src/agents/email/email-events.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { ProviderWebhook } from '../../../src/platform/webhooks/provider-webhook.js';
import { textsOfRows } from '../../platform/database/traces.js';
import { queryRows } from '../../platform/database/catalog.js';
import { emailSite, type EmailOwner, type EmailSite } from './email-site.js';
import { AUTHSERV_ID, ResendStandIn, say } from '../../../dev/email/resend-stand-in.js';

const SIGNAL = new AbortController().signal;
const STORED = { received: true, handled: true };
const refused = (reason: string) => ({ received: true, handled: false, reason });

let site: EmailSite;
let owner: EmailOwner;

beforeAll(async () => {
  site = await emailSite({ EMAIL_ALLOWED_SENDERS: 'Grace@Partner.Example, @friends.example' });
});
beforeEach(async () => {
  owner = await site.newOwner();
  site.resend.fault = () => false;
  site.resend.loss = () => false;
  site.resend.sent.length = 0;
  site.resend.calls.length = 0;
});
afterAll(() => site?.close());

const said = async (event: unknown, how?: Parameters<EmailSite['deliver']>[1]) => {
  const { body, status } = await site.deliver(event, how);
  return status === 200 ? body : [status, body.error];
};

/** Delivers a mail and returns its row. */
async function stored(mail?: Parameters<EmailOwner['write']>[0]) {
  expect(await said(owner.write(mail))).toEqual(STORED);
  const row = (await site.rows(owner)).at(-1);
  if (!row) throw new TypeError('the mail was not stored');
  return row;
}

const read = async (mail?: Parameters<EmailOwner['write']>[0]) => {
  const { id } = await stored(mail);
  await site.emails.read(id, SIGNAL);
  return now(id);
};

async function now(id: string) {
  const row = (await site.rows(owner)).find((each) => each.id === id);
  if (!row) throw new TypeError('the mail is missing');
  return row;
}

/** Adds mails, whose sender is proven unless they are `received` or `refused`. */
const addMails = (status: string, count: number) =>
  site.database.db.asPlatform().query(
    `INSERT INTO agent_emails (id, user_id, agent_id, provider_id, sender, status, settled_at,
                               conversation)
     SELECT gen_random_uuid()::text, $userId, $agentId, gen_random_uuid()::text, 'x', $status,
            CASE WHEN $status <> 'received' THEN now() END,
            CASE WHEN $status NOT IN ('received', 'refused') THEN 'email-x' END
       FROM generate_series(1, $count)`,
    { ...owner, status, count },
  );

const ref = (id: string) => ({ id, agent: owner });

/** Reads a mail, lets the agent answer, and sends the answer. */
async function answered(mail?: Parameters<EmailOwner['write']>[0], answer = 'Yes, it is') {
  const row = await read(mail);
  await site.emails.finish(ref(row.id), { kind: 'answered', answer });
  expect(await site.emails.send(row.id, SIGNAL)).toBe('answered');
  return row;
}

describe('event of a new mail', () => {
  test("the event of a new mail is stored for the owner's address, and for the operator's list", async () => {
    for (const from of [owner.address, 'grace@partner.example', 'A <b@friends.example>']) {
      expect(await said(owner.write({ from }))).toEqual(STORED);
    }
    const rows = await site.rows(owner);
    expect(rows.map(({ sender, status }) => [sender, status])).toEqual(
      [owner.address, 'grace@partner.example', 'b@friends.example'].map((each) => [
        each,
        'received',
      ]),
    );
  });

  test('the event of a new mail has no effect for another sender, recipient or event', async () => {
    const stranger = await site.newOwner();
    const events = [
      [owner.write({ from: stranger.address }), 'sender'],
      [owner.write({ from: 'mallory@partner.example' }), 'sender'],
      [owner.write({ from: 'mallory@sub.friends.example' }), 'sender'],
      [owner.write({ from: `${owner.address}, mallory@evil.example` }), 'sender'],
      [owner.write({ from: `x@${site.resend.domain}` }), 'sender'],
      [owner.write({ from: stranger.agent }), 'sender'],
      [owner.write({ to: [`nobody@${site.resend.domain}`] }), 'recipient'],
      [owner.write({ to: [`${owner.agentId}@elsewhere.example`] }), 'recipient'],
      [owner.write({ to: [] }), 'recipient'],
      [{ type: 'email.opened', data: { email_id: 'x' } }, 'event'],
      [{ type: 'email.received', data: {} }, 'event'],
      ['a text', 'event'],
      [null, 'event'],
    ] as const;
    for (const [event, reason] of events) expect(await said(event)).toEqual(refused(reason));
    expect(await site.rows(owner)).toEqual([]);
  });

  test('the event of a new mail needs a verified address of the owner', async () => {
    const { db } = site.database;
    await db.asPlatform().query('UPDATE users SET email_verified_at = NULL WHERE id = $userId', {
      userId: owner.userId,
    });
    expect(await said(owner.write())).toEqual(refused('sender'));
  });

  test('the event of a new mail is delivered to the first agent among the recipients, in any letter case', async () => {
    const to = ['nobody@elsewhere.example', `"An agent" <${owner.agent.toUpperCase()}>`];
    expect(await said(owner.write({ to }))).toEqual(STORED);
  });

  test('the event of a new mail is stored once, however often and however many at a time', async () => {
    const event = owner.write();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => said(event, { id: `of-${owner.agentId}` })),
    );
    expect(answers.filter(({ handled }) => handled)).toEqual([STORED]);
    expect(answers.filter(({ handled }) => !handled)).toEqual(
      Array.from({ length: 49 }, () => refused('duplicate')),
    );
    // The provider reports the same mail by another event.
    expect(await said(event)).toEqual(refused('duplicate'));
    expect(await site.rows(owner)).toHaveLength(1);
  });

  test('the event of a new mail is refused beyond 60 in an hour; mails without a proven sender do not count', async () => {
    await addMails('answered', 59);
    await addMails('refused', 100);
    await addMails('received', 100);
    expect(await said(owner.write())).toEqual(STORED);
    await addMails('skipped', 1);
    expect(await said(owner.write())).toEqual(refused('rate'));
    const other = await site.newOwner();
    expect(await said(other.write())).toEqual(STORED);
  });

  test('the event of a new mail is stored after hundreds of forged mails, of which the newest are kept', async () => {
    await addMails('refused', 700);
    const forged = await stored({ headers: {} });
    await site.emails.read(forged.id, SIGNAL);
    const rows = await site.rows(owner);
    expect(rows).toHaveLength(100);
    expect(rows.at(-1)?.id).toBe(forged.id);
    expect(await said(owner.write())).toEqual(STORED);
  });

  test('the event of a new mail is refused while hundreds of mails wait to be read', async () => {
    await addMails('received', 599);
    expect(await said(owner.write())).toEqual(STORED);
    expect(await said(owner.write())).toEqual(refused('rate'));
    expect(await said((await site.newOwner()).write())).toEqual(STORED);
  });

  test('the event of a new mail is refused with a missing, wrong or old signature from any sender', async () => {
    const event = owner.write();
    const { body, headers } = site.resend.signed(event);
    const post = async (more: Record<string, string>, text = body) => {
      const options = { body: text, headers: { ...headers, ...more } };
      const answer = await site.web(undefined, 'POST', '/api/webhooks/email', options);
      return [answer.status, answer.body.error];
    };
    const invalid = [400, 'Invalid signature'];
    expect(await post({ 'svix-signature': 'v1,AAAA' })).toEqual(invalid);
    expect(await post({}, `${body} `)).toEqual(invalid);
    const old = { at: new Date(Date.now() - 6 * 60_000) };
    expect(await said(event, old)).toEqual(invalid);
    expect(await site.rows(owner)).toEqual([]);
    expect(await said(event, { prefix: 'webhook' })).toEqual(STORED);
  });
});

describe('reading of a mail', () => {
  test('stores subject, text and thread for the agent', async () => {
    const row = await read();
    expect(row).toMatchObject({ status: 'asking', body: 'Is the shop open?' });
    expect(await site.emails.question(ref(row.id))).toEqual({
      conversation: row.conversation,
      text: 'Subject: A question\n\nIs the shop open?',
    });
    expect(row.conversation).toMatch(/^email-[\da-f-]{36}$/);
  });

  test('continues the conversation of its thread, and of no other sender', async () => {
    const first = await read({ message_id: '<root@mail.example>' });
    const headers = (from: string) => ({
      'authentication-results': `${AUTHSERV_ID}; dmarc=pass header.from=${from}`,
      references: '<root@mail.example> <answer@mail.example>',
    });
    const next = await read({ headers: headers('example.com') });
    expect(next.conversation).toBe(first.conversation);
    const other = await read({
      from: 'grace@partner.example',
      headers: headers('partner.example'),
    });
    expect(other.conversation).not.toBe(first.conversation);
  });

  test('converts HTML', async () => {
    const html = '<h1>Hello</h1><p>Is the <b>shop</b> open?</p><p>Ada</p><script>alert(1)</script>';
    expect((await read({ text: null, html })).body).toBe('Hello\n\nIs the shop open?\n\nAda');
  });

  test.each([
    ['no results', {}],
    [
      'results of another server before the right ones',
      {
        'authentication-results': [
          'mx.evil.example; dmarc=pass header.from=example.com',
          `${AUTHSERV_ID}; dmarc=fail header.from=example.com`,
        ],
      },
    ],
    [
      'a pass for another domain',
      { 'authentication-results': `${AUTHSERV_ID}; dkim=pass header.d=evil.example` },
    ],
    [
      'another sender in its fields',
      {
        'authentication-results': `${AUTHSERV_ID}; dmarc=pass header.from=example.com`,
        from: 'mallory@example.com',
      },
    ],
  ])('refuses a mail with %s and sends no question and no answer', async (_, headers) => {
    expect(await read({ headers })).toMatchObject({
      status: 'refused',
      reason: 'sender',
      body: null,
    });
    expect(site.resend.sent).toEqual([]);
  });

  test.each<Record<string, string>>([{ 'auto-submitted': 'auto-replied' }, { precedence: 'bulk' }])(
    'refuses a mail with %j, which no person wrote',
    async (more) => {
      const results = `${AUTHSERV_ID}; dmarc=pass header.from=example.com`;
      const headers = { 'authentication-results': results, ...more };
      expect(await read({ headers })).toMatchObject({ status: 'refused', reason: 'automatic' });
    },
  );

  test('sends no question for a mail without text, or for an owner without a plan', async () => {
    const empty = { subject: '', text: ' ', html: null };
    expect(await read(empty)).toMatchObject({ status: 'skipped', reason: 'The mail has no text' });
    await queryRows(
      site.database.ownerUrl,
      `DELETE FROM subscriptions WHERE user_id = '${owner.userId}'`,
    );
    expect(await read()).toMatchObject({
      status: 'skipped',
      reason: "The agent's owner has no plan",
    });
  });

  test('refuses mails beyond 60 in an hour, however many are read at a time', async () => {
    await addMails('answered', 58);
    const forged = await Promise.all(
      Array.from({ length: 5 }, () => said(owner.write({ headers: {} }))),
    );
    const real = await Promise.all(Array.from({ length: 5 }, () => said(owner.write())));
    expect([...forged, ...real]).toEqual(Array.from({ length: 10 }, () => STORED));
    const rows = (await site.rows(owner)).filter(({ status }) => status === 'received');
    await Promise.all(rows.map(({ id }) => site.emails.read(id, SIGNAL)));
    const ends = (await site.rows(owner)).flatMap(({ id, reason, status }) =>
      rows.some((row) => row.id === id) ? [reason ?? status] : [],
    );
    const count = (end: string) => ends.filter((each) => each === end).length;
    expect([count('asking'), count('rate'), count('sender')]).toEqual([2, 3, 5]);
    expect(site.resend.sent).toEqual([]);
  });

  test("refuses a sender whose address is no longer the owner's", async () => {
    const { id } = await stored();
    await site.database.db
      .asPlatform()
      .query('UPDATE users SET email_verified_at = NULL WHERE id = $userId', {
        userId: owner.userId,
      });
    await site.emails.read(id, SIGNAL);
    expect(await now(id)).toMatchObject({ status: 'refused', reason: 'sender' });
  });

  test('refuses the mailbox of an account that was reported as hijacked', async () => {
    await setResetMailBlocks(site.database.db.asPlatform(), [owner.address], {
      stopped: true,
      at: new Date(),
    });
    expect(await read()).toMatchObject({ status: 'refused', reason: 'sender' });
  });

  test('the reading of a mail is retried while the provider fails, and ends when the mail no longer exists', async () => {
    const { id } = await stored();
    for (const fault of [
      (response: Parameters<typeof say>[0]) => say(response, 500, {}),
      (response: Parameters<typeof say>[0]) => say(response, 429, {}),
      (response: Parameters<typeof say>[0]) => say(response, 200, { from: 7 }),
      (response: Parameters<typeof say>[0]) => response.end('<html>'),
      (response: Parameters<typeof say>[0]) => response.destroy(),
      (response: Parameters<typeof say>[0]) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
        response.write('{"from": "', () => response.destroy());
      },
      // An answer that arrives too late.
      () => undefined,
    ]) {
      site.resend.fault = (response) => {
        fault(response);
        return true;
      };
      const reading = site.emails.read(id, AbortSignal.timeout(500));
      await expect(reading).rejects.toThrow('The e-mail provider');
    }
    expect(await now(id)).toMatchObject({ status: 'received' });
    site.resend.fault = () => false;
    site.resend.mails.clear();
    await site.emails.read(id, SIGNAL);
    expect(await now(id)).toMatchObject({
      status: 'failed',
      reason: 'The e-mail provider answered with status 404',
    });
  });
});

describe('answer', () => {
  test('an answer is a mail in the thread, sent once', async () => {
    const message_id = '<m@mail.example>';
    const results = `${AUTHSERV_ID}; dmarc=pass header.from=example.com`;
    const headers = { 'authentication-results': results, references: '<a@x> <b@x>' };
    const { id } = await answered({ message_id, headers });
    await site.emails.send(id, SIGNAL);
    const [sent, ...others] = site.resend.sent;
    expect(others).toEqual([]);
    expect(sent).toMatchObject({
      from: owner.agent,
      to: [owner.address],
      subject: 'Re: A question',
      text: 'Yes, it is',
      headers: {
        'In-Reply-To': message_id,
        References: `<a@x> <b@x> ${message_id}`,
        'Auto-Submitted': 'auto-replied',
      },
    });
    expect(site.resend.calls.filter((call) => call.startsWith('POST'))).toEqual([
      `POST /emails email-${id}`,
    ]);
  });

  test('an answer is sent again under the same key when the answer of the provider is lost, and arrives once', async () => {
    const { id } = await read();
    await site.emails.finish(ref(id), { kind: 'answered', answer: 'Yes' });
    const losses = [
      (response: Parameters<typeof say>[0]) => void response.destroy(),
      (response: Parameters<typeof say>[0]) => say(response, 500, {}),
      (response: Parameters<typeof say>[0]) => say(response, 200, 'garbage'),
    ];
    for (const lose of losses) {
      site.resend.loss = (response) => {
        lose(response);
        return true;
      };
      await expect(site.emails.send(id, SIGNAL)).rejects.toThrow('The e-mail provider');
      expect(await now(id)).toMatchObject({ status: 'answering' });
    }
    site.resend.loss = () => false;
    expect(await site.emails.send(id, SIGNAL)).toBe('answered');
    expect(site.resend.sent).toHaveLength(1);
    expect(new Set(site.resend.calls.filter((call) => call.startsWith('POST'))).size).toBe(1);
  });

  test('an answer is not sent again when the provider may have forgotten its key', async () => {
    const { id } = await read();
    await site.emails.finish(ref(id), { kind: 'answered', answer: 'Yes' });
    await queryRows(
      site.database.ownerUrl,
      `UPDATE agent_emails SET sending_at = now() - interval '24 hours' WHERE id = '${id}'`,
    );
    expect(await site.emails.send(id, SIGNAL)).toBe('failed');
    expect(await now(id)).toMatchObject({ reason: expect.stringContaining('may have been sent') });
    expect(site.resend.sent).toEqual([]);
  });

  test('an answer ends the mail if the provider refuses it', async () => {
    const { id } = await read();
    await site.emails.finish(ref(id), { kind: 'answered', answer: 'Yes' });
    site.resend.fault = (response) => {
      say(response, 422, { name: 'validation_error', message: 'Is the shop open?' });
      return true;
    };
    expect(await site.emails.send(id, SIGNAL)).toBe('failed');
    expect((await now(id)).reason).toBe('The e-mail provider answered with status 422');
  });

  test('follows no redirect of the provider', async () => {
    const { id } = await read();
    await site.emails.finish(ref(id), { kind: 'answered', answer: 'Yes' });
    site.resend.fault = (response) => {
      response.writeHead(307, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
      return true;
    };
    const sending = site.emails.send(id, SIGNAL);
    await expect(sending).rejects.toThrow(/^The e-mail provider answered with status 307$/);
  });

  test('an answer is not sent for a turn without an answer', async () => {
    for (const [kind, status] of [
      ['failed', 'failed'],
      ['skipped', 'skipped'],
    ] as const) {
      const { id } = await read();
      await site.emails.finish(ref(id), { kind, reason: 'x' });
      expect(await site.emails.send(id, SIGNAL)).toBe(status);
    }
    const { id } = await read();
    await site.emails.finish(ref(id), { kind: 'answered', answer: ' \n' });
    expect(await site.emails.send(id, SIGNAL)).toBe('skipped');
    expect(site.resend.sent).toEqual([]);
  });

  test('leaves no text of the mail in its row, and none in the log', async () => {
    const text = 'The password of the shop is swordfish';
    await answered({ subject: 'About swordfish', text }, 'Not swordfish again');
    const rows = await textsOfRows(site.database.db.asPlatform());
    expect(rows.filter((row) => row.includes('swordfish'))).toEqual([]);
    expect(site.logged.filter((line) => line.includes('swordfish'))).toEqual([]);
    for (const secret of [site.resend.apiKey, site.resend.secret, owner.address]) {
      expect(site.logged.filter((line) => line.includes(secret))).toEqual([]);
    }
  });
});

describe('bounce and complaint', () => {
  const marks = async (id: string) => {
    const [row] = await queryRows<Record<string, unknown>>(
      site.database.ownerUrl,
      `SELECT bounced_at IS NOT NULL AS bounced, bounce, complained_at IS NOT NULL AS complained
         FROM agent_emails WHERE id = '${id}'`,
    );
    return row;
  };

  test('bounces and complaints are recorded with the mail that the answer was for, once', async () => {
    const { id } = await answered();
    const [sent] = site.resend.sent;
    if (!sent) throw new TypeError('the answer was not sent');
    const bounce = { bounce: { type: 'Permanent', subType: 'Suppressed', message: 'x' } };
    const event = site.resend.about('email.bounced', { id: sent.id }, bounce);
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => said(event, { id: `bounce-${id}` })),
    );
    expect(answers.filter(({ handled }) => handled)).toEqual([STORED]);
    expect(answers.filter(({ reason }) => reason === 'duplicate')).toHaveLength(49);
    expect(await said(site.resend.about('email.complained', { id: sent.id }))).toEqual(STORED);
    expect(await marks(id)).toEqual({
      bounced: true,
      bounce: 'Permanent/Suppressed',
      complained: true,
    });
  });

  test('find a mail whose answer has no known id yet, by its tag', async () => {
    const { id } = await read();
    await site.emails.finish(ref(id), { kind: 'answered', answer: 'Yes' });
    site.resend.loss = (response) => {
      response.destroy();
      return true;
    };
    await expect(site.emails.send(id, SIGNAL)).rejects.toThrow();
    const [sent] = site.resend.sent;
    if (!sent) throw new TypeError('the answer was not sent');
    expect(await said(site.resend.about('email.bounced', sent))).toEqual(STORED);
    expect(await marks(id)).toMatchObject({ bounced: true, bounce: null });
  });

  test('bounces and complaints have no effect for a mail of another program', async () => {
    for (const type of ['email.bounced', 'email.complained']) {
      expect(await said(site.resend.about(type, { id: 'unknown' }))).toEqual(refused('unknown'));
    }
  });
});

test('delivers a mail that a developer writes at the stand-in, and signs its event', async () => {
  const delivered: unknown[] = [];
  const platform = createServer((request, response) => {
    void buffer(request).then((body) => {
      const headers = request.headers as Record<string, string>;
      const webhook = new ProviderWebhook({ kind: 'email', secrets: [own.secret], setting: '' });
      delivered.push(webhook.verify(body, headers).payload);
      response.end();
    });
  });
  await once(platform.listen(0, '127.0.0.1'), 'listening');
  const { port } = platform.address() as AddressInfo; // TCP: always an object
  const own = await ResendStandIn.open({ webhookUrl: `http://127.0.0.1:${port}/` });
  try {
    const post = (type: string) =>
      fetch(`${own.env.EMAIL_API_URL}/inbox`, {
        method: 'POST',
        headers: { 'content-type': type },
        body: JSON.stringify({ from: 'a@x.example', to: owner.agent, text: 'Hello' }),
      });
    expect((await post('application/json')).status).toBe(202);
    await expect.poll(() => delivered).toMatchObject([{ data: { to: [owner.agent] } }]);
    // A page of another site may send this type without a question.
    expect((await post('text/plain')).status).toBe(400);
  } finally {
    own.close();
    platform.close();
  }
});

test.each(['apiKey', 'domain', 'webhookSecrets'] as const)(
  'the webhook is unavailable without the setting %s',
  async (name) => {
    const { email } = site.dependencies.settings;
    const events = new EmailEvents(site.database.db, { ...email, [name]: undefined });
    const { body, headers } = site.resend.signed(owner.write());
    const receiving = events.receive(Buffer.from(body), headers);
    await expect(receiving).rejects.toThrow(UnavailableError);
  },
);
