import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_AN_HOUR, MAX_STORED_BYTES } from '../../src/bus/bus-acceptance.js';
import { Random } from '../support/random.js';
import { sentQueries } from '../support/sent-queries.js';
import { malformedMessages } from './malformed.js';
import {
  busSite,
  messageOf,
  SEND,
  signed,
  textOf,
  type BusAgent,
  type BusSite,
} from './support.js';

let site: BusSite;
let ada: BusAgent;
let bob: BusAgent;

beforeAll(async () => {
  site = await busSite();
  [ada, bob] = [await site.agent(), await site.agent()];
});
afterAll(() => site?.close());

const attack = { tags: 'attack' };
const stored = (messageId: string) =>
  site.rows<{ action: string; service: string; status: string; sealed: string }>(
    `SELECT action, service, status, sealed FROM bus_messages WHERE message_id = '${messageId}'`,
  );
const countAll = async () => {
  const [row] = await site.rows<{ count: string }>('SELECT count(*) FROM bus_messages');
  return Number(row?.count);
};

describe('a signed message', () => {
  test('a signed message is stored for the recipient, sealed', async () => {
    const { answer, message } = await site.send(ada, bob, { payload: { note: 'a-marked-text' } });
    expect([answer.status, answer.body]).toEqual([
      200,
      { success: true, messageId: message.messageId },
    ]);
    const [row] = await stored(message.messageId);
    expect(row).toMatchObject({
      action: 'BOOKING_REQUEST',
      service: 'negotiation',
      status: 'queued',
    });
    expect(row?.sealed).not.toContain('a-marked-text');
    expect(JSON.stringify(site.logged)).not.toContain('a-marked-text');
  });

  test('a signed message is accepted from an agent to itself', async () => {
    const { answer } = await site.send(ada, ada, { action: 'AMPLIFY_POST' });
    expect(answer.status).toBe(200);
  });

  test('a signed message is stored once, however often and however concurrently it is sent', async () => {
    const message = messageOf(ada, bob);
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () => site.post(await signed(ada, message))),
    );
    const later = { ...message, timestamp: message.timestamp + 1 };
    answers.push(await site.post(await signed(ada, later)));
    expect(answers.map(({ status }) => status)).toEqual(Array(11).fill(200));
    expect(await stored(message.messageId)).toHaveLength(1);
  });

  test('a signed message is refused with 409 if the sender has another one of its id', async () => {
    const { message } = await site.send(ada, bob);
    const other = { ...message, payload: { note: 'another' } };
    const answer = await site.post(await signed(ada, other));
    expect([answer.status, answer.body.code]).toEqual([409, 'MESSAGE_ID_REUSED']);
    const ofBob = await site.send(bob, ada, { messageId: message.messageId });
    expect(ofBob.answer.status).toBe(200);
  });

  test('a signed message is signed over the canonical form, regardless of the order and the spelling of the body', async () => {
    const message = messageOf(ada, bob, {
      payload: { z: 1, ä: [1.5, 'é'], a: { c: null, b: true } },
    });
    const { signature } = await signed(ada, message);
    const { action, from, messageId, payload, timestamp, to } = message;
    const shuffled = { timestamp, signature, to, payload, from, action, messageId };
    expect((await site.post(shuffled)).status).toBe(200);
  });
});

describe('a refused message', () => {
  test.each([
    ['messageId', undefined],
    ['messageId', ''],
    ['messageId', 'with a space'],
    ['action', undefined],
    ['action', 'PAY_NOW'],
    ['signature', undefined],
    ['signature', 7],
    ['from', undefined],
    ['to', undefined],
    ['payload', undefined],
    ['payload', 'text'],
    ['payload', []],
    ['timestamp', undefined],
    ['timestamp', 'now'],
    ['timestamp', 1.5],
    ['more', 'unknown'],
  ])('a message is 400 with %s %j', async (name, value) => {
    const message = await signed(ada, messageOf(ada, bob));
    expect((await site.post({ ...message, [name]: value })).status).toBe(400);
  });

  test('a message is 400 with a number that JSON cannot hold', async () => {
    const message = JSON.stringify({ ...messageOf(ada, bob), signature: `0x${'1'.repeat(130)}` });
    const answer = await site.post(message.replace('"hello"', '1e999'));
    expect([answer.status, answer.body.error]).toEqual([
      400,
      'payload has a number that is too large',
    ]);
  });

  test('a message is 413 beyond 64 kB', async () => {
    const { answer } = await site.send(ada, bob, { payload: { note: 'a'.repeat(64 * 1024) } });
    expect(answer.status).toBe(413);
  });

  test.each([
    ['another wallet', async () => ({ ...(await signed(bob, messageOf(ada, bob))) })],
    [
      'a change after its signature',
      async () => ({ ...(await signed(ada, messageOf(ada, bob))), action: 'BOOKING_ACCEPT' }),
    ],
    ['an unknown sender', () => signed(ada, messageOf({ id: 'nobody' }, bob))],
    ['a time in the past', () => signed(ada, messageOf(ada, bob, { timestamp: now() - 301 }))],
    ['a time in the future', () => signed(ada, messageOf(ada, bob, { timestamp: now() + 301 }))],
    [
      "a contract's signature for the wallet of a key",
      () => Promise.resolve({ ...messageOf(ada, bob), signature: `0x${'12'.repeat(100)}` }),
    ],
    [
      'a signature of another text',
      async () => {
        const message = messageOf(ada, bob);
        const text = textOf(message).replace(':v1', ':v2');
        return { ...message, signature: await ada.wallet.signMessage({ message: text }) };
      },
    ],
  ])('a message is 401 with %s', attack, async (_what, make) => {
    const answer = await site.post(await make());
    expect([answer.status, answer.body]).toEqual([401, { error: 'Invalid signature' }]);
  });

  test('a message is 404 without the recipient, or when the recipient is being removed', async () => {
    expect((await site.send(ada, { id: 'nobody' })).answer.status).toBe(404);
    const gone = await site.agent();
    await site.rows(`UPDATE agents SET desired = 'deleted' WHERE id = '${gone.id}'`);
    expect((await site.send(ada, gone)).answer.status).toBe(404);
    expect((await site.send(gone, ada)).answer.status).toBe(401);
  });

  test("a message is 402 when the sender's owner has no plan", async () => {
    const poor = await site.agent({ plan: null });
    const { answer } = await site.send(poor, ada);
    expect([answer.status, answer.body.code]).toEqual([402, 'PLAN_REQUIRED']);
    expect((await site.send(ada, poor)).answer.status).toBe(200);
  });

  test('a message is 404 when the recipient refuses the agent or its owner', attack, async () => {
    const url = 'http://127.0.0.1:1/';
    for (const refused of [ada.id, ada.owner.id]) {
      const picky = await site.agent();
      await site.rows(
        `INSERT INTO bus_webhooks (agent_id, user_id, url, sealed_secret, refuses)
         VALUES ('${picky.id}', '${picky.owner.id}', '${url}', 'sealed', '{${refused}}')`,
      );
      expect((await site.send(ada, picky)).answer.status).toBe(404);
      expect((await site.send(bob, picky)).answer.status).toBe(200);
    }
  });
});

describe('limits', attack, () => {
  test('counts the messages of all agents of an owner on a UTC day, by plan', async () => {
    const first = await site.agent({ plan: 'label' });
    const second = await site.agent({ owner: first.owner, plan: null });
    await site.send(first, ada);
    await site.rows(`UPDATE bus_counts SET sent = 99 WHERE user_id = '${first.owner.id}'`);
    expect((await site.send(second, ada)).answer.status).toBe(200);
    const { answer } = await site.send(first, ada);
    expect([answer.status, answer.body]).toEqual([
      429,
      expect.objectContaining({ code: 'MESSAGE_LIMIT_REACHED', current: 100, limit: 100 }),
    ]);
    await site.rows(`UPDATE bus_counts SET day = day - 1 WHERE user_id = '${first.owner.id}'`);
    expect((await site.send(first, ada)).answer.status).toBe(200);
  });

  test('a refused or repeated message does not count', async () => {
    const sender = await site.agent();
    const { message } = await site.send(sender, ada);
    await site.post(await signed(sender, message));
    await site.send(sender, { id: 'nobody' });
    const [counts] = await site.rows<{ sent: number }>(
      `SELECT sent FROM bus_counts WHERE user_id = '${sender.owner.id}'`,
    );
    expect(counts?.sent).toBe(1);
  });

  test('an agent accepts at most 600 messages an hour', async () => {
    const [sender, flooded] = [await site.agent(), await site.agent()];
    await site.rows(
      `INSERT INTO bus_messages (message_id, action, service, from_agent, from_user, to_agent,
                                 to_user, digest, sealed, status, tried_at)
       SELECT 'flood-' || n, 'BOOKING_X', 'negotiation', '${bob.id}', '${bob.owner.id}',
              '${flooded.id}', '${flooded.owner.id}', 'd', 's', 'delivered', now()
         FROM generate_series(1, ${MAX_AN_HOUR}) n`,
    );
    const { answer } = await site.send(sender, flooded);
    expect([answer.status, answer.body]).toMatchObject([
      429,
      { current: MAX_AN_HOUR, limit: MAX_AN_HOUR },
    ]);
    await site.rows(
      `UPDATE bus_messages SET created_at = now() - interval '61 minutes'
        WHERE message_id = 'flood-1' AND to_agent = '${flooded.id}'`,
    );
    expect((await site.send(sender, flooded)).answer.status).toBe(200);
  });

  test.each(['sender', 'recipient'])('the stored bytes of the %s are limited', async (party) => {
    const [from, to] = [await site.agent(), await site.agent()];
    await site.send(from, to);
    const { owner } = party === 'sender' ? from : to;
    await site.rows(
      `UPDATE bus_counts SET bytes = ${MAX_STORED_BYTES} - 10 WHERE user_id = '${owner.id}'`,
    );
    const { answer } = await site.send(from, to);
    expect([answer.status, answer.body]).toMatchObject([
      429,
      { current: MAX_STORED_BYTES - 10, limit: MAX_STORED_BYTES },
    ]);
  });

  test('removed messages free the bytes of both owners', async () => {
    const [from, to] = [await site.agent(), await site.agent()];
    await site.send(from, to);
    await site.send(from, from);
    const bytes = () =>
      site.rows<{ bytes: string }>(
        `SELECT bytes FROM bus_counts WHERE user_id IN ('${from.owner.id}', '${to.owner.id}')`,
      );
    expect((await bytes()).every((row) => Number(row.bytes) > 0)).toBe(true);
    await site.rows(`DELETE FROM bus_messages WHERE from_agent = '${from.id}'`);
    expect(await bytes()).toEqual([{ bytes: '0' }, { bytes: '0' }]);
  });
});

test('a thousand malformed messages cost no query and leave no row', attack, async () => {
  const random = new Random(Number(process.env.BUS_SEED ?? Math.floor(Math.random() * 1e9)));
  console.log(`malformed messages of BUS_SEED=${random.seed}`);
  const valid = messageOf(ada, bob);
  const bodies = await malformedMessages(random, 1_000, valid, ada);
  const before = await countAll();
  const statuses = new Map<number, number>();
  const { ownerUrl } = site.database;
  const queries = await sentQueries(ownerUrl, async () => {
    for (const body of bodies) {
      const { status } = await site.post(body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  expect(queries).toEqual([]);
  expect([...statuses.keys()].sort()).toEqual([400, 401, 413]);
  expect(await countAll()).toBe(before);
  // A message that is well formed costs statements, which shows that they are noted.
  const body = await signed(ada, valid);
  expect(await sentQueries(ownerUrl, async () => void (await site.post(body)))).not.toEqual([]);
});

test('needs no bearer, and ignores one', async () => {
  const body = await signed(ada, messageOf(ada, bob));
  const answer = await site.backend(undefined, 'POST', SEND, { body });
  expect(answer.status).toBe(200);
});

const now = () => Math.floor(Date.now() / 1_000);
