import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import canonicalize from 'canonicalize';
import { BusDelivery, MAX_DEAD_IN_ROW, NotDeliveredError } from '../../src/bus/bus-delivery.js';
import { webhookContext } from '../../src/bus/sealed-contexts.js';
import { OutboundClient, type OutboundOptions } from '../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../src/platform/outbound/allowed-places.js';
import { Client, Connection } from '@temporalio/client';
import { busMessageRuns } from '../../temporal/row-runs.js';
import { busMessages } from '../../worker/handed-rows.js';
import { handOver } from '../../worker/hand-over.js';
import { LYING_ANSWERS } from '../platform/outbound/forged.js';
import { busSite, type BusAgent, type BusSite } from './support.js';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let site: BusSite;
let ada: BusAgent;
let bob: BusAgent;
let delivery: BusDelivery;
let port: number;

const received: Received[] = [];
let answers: number[] = [];
const server = http.createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('end', () => {
    received.push({ headers: request.headers, body: Buffer.concat(pieces).toString() });
    response.writeHead(answers.shift() ?? 200).end();
  });
});
const SECRET = 'a-secret-of-the-webhook';
const signal = new AbortController().signal;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  site = await busSite();
  delivery = deliveryWith({});
});
afterAll(async () => {
  await site?.close();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(async () => {
  received.splice(0);
  answers = [];
  [ada, bob] = [await site.agent(), await site.agent()];
});

function deliveryWith(options: OutboundOptions): BusDelivery {
  const { secrets } = site.dependencies;
  const allow = allowedDestinations.parse(`127.0.0.1:${port}`);
  const outbound = new OutboundClient({ allow, ...options });
  return new BusDelivery({ database: site.database.db, secrets, outbound });
}

async function hook({ id, owner }: BusAgent, url = `http://127.0.0.1:${port}/hook`): Promise<void> {
  const sealed = site.dependencies.secrets.seal(SECRET, webhookContext(id));
  await site.rows(
    `INSERT INTO bus_webhooks (agent_id, user_id, url, sealed_secret)
     VALUES ('${id}', '${owner.id}', '${url}', '${sealed}')`,
  );
}

interface Row {
  readonly id: string;
  readonly status: string;
  readonly attempts: readonly { readonly status: number | null; readonly error: string | null }[];
  readonly tried_at: Date | null;
  readonly due_at: Date | number;
}

async function sent(from = ada, to = bob, parts = {}): Promise<Row & { messageId: string }> {
  const { answer, message } = await site.send(from, to, parts);
  expect(answer.status).toBe(200);
  const [row] = await site.rows<Row>(
    `SELECT * FROM bus_messages WHERE message_id = '${message.messageId}'`,
  );
  if (!row) throw new Error('the message was not stored');
  return { ...row, messageId: message.messageId };
}

const rowOf = async (id: string) => {
  const [row] = await site.rows<Row>(`SELECT * FROM bus_messages WHERE id = ${id}`);
  return row;
};

const shown = (messageId: string, as = bob, query = '') =>
  site.backend(as.owner, 'GET', `/api/underground/bus/messages/${messageId}${query}`);

describe('a delivery', () => {
  test('posts the message without its signature, signed by the secret of the webhook', async () => {
    await hook(bob);
    const { answer, message } = await site.send(ada, bob, { payload: { b: 1, a: 'ä' } });
    expect(answer.status).toBe(200);
    const [row] = await site.rows<Row>(
      `SELECT id FROM bus_messages WHERE message_id = '${message.messageId}'`,
    );
    expect(await delivery.deliver(row?.id ?? '', signal)).toBe('delivered');
    expect(received).toHaveLength(1);
    const [{ body, headers }] = received as [Received];
    expect(body).toBe(canonicalize(message));
    expect(headers['x-bus-message-id']).toBe(message.messageId);
    const [, time, mac] =
      /^t=(\d+),v1=([\da-f]{64})$/.exec(String(headers['x-bus-signature'])) ?? [];
    expect(Math.abs(Date.now() / 1_000 - Number(time))).toBeLessThan(30);
    expect(mac).toBe(createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex'));
    expect((await shown(message.messageId)).body).toEqual({
      messageId: message.messageId,
      action: 'BOOKING_REQUEST',
      from: ada.id,
      to: bob.id,
      service: 'negotiation',
      status: 'delivered',
      step: null,
      attempts: [{ at: expect.any(String), status: 200, error: null }],
      createdAt: expect.any(String),
      deliveredAt: expect.any(String),
    });
  });

  test('a delivery is retried under the same id after any answer but a 2xx and a 410', async () => {
    await hook(bob);
    answers = [302, 500, 404, 204];
    const { id, messageId } = await sent();
    for (const _ of [1, 2, 3]) {
      await expect(delivery.deliver(id, signal)).rejects.toThrow(NotDeliveredError);
    }
    expect(await delivery.deliver(id, signal)).toBe('delivered');
    expect(await delivery.deliver(id, signal)).toBe('settled');
    expect(new Set(received.map(({ headers }) => headers['x-bus-message-id']))).toEqual(
      new Set([messageId]),
    );
    const { body } = await shown(messageId, ada);
    expect(body.attempts.map(({ status }: { status: number }) => status)).toEqual([
      302, 500, 404, 204,
    ]);
  });

  test('a delivery ends with a 410', async () => {
    await hook(bob);
    answers = [410];
    const { id } = await sent();
    expect(await delivery.deliver(id, signal)).toBe('dead');
    expect(await rowOf(id)).toMatchObject({ status: 'dead' });
  });

  test('waits for a webhook, and for one that is not paused', async () => {
    const { id } = await sent();
    await expect(delivery.deliver(id, signal)).rejects.toThrow('has no webhook');
    await hook(bob);
    await site.rows(`UPDATE bus_webhooks SET paused_at = now() WHERE agent_id = '${bob.id}'`);
    await expect(delivery.deliver(id, signal)).rejects.toThrow('is paused');
    expect(await rowOf(id)).toMatchObject({ status: 'queued', attempts: [] });
    expect(received).toEqual([]);
    await site.rows(`UPDATE bus_webhooks SET paused_at = NULL WHERE agent_id = '${bob.id}'`);
    expect(await delivery.deliver(id, signal)).toBe('delivered');
  });

  test.each(['sender', 'recipient'])(
    'a delivery ends when the %s is being removed',
    async (party) => {
      await hook(bob);
      const { id } = await sent();
      const removed = party === 'sender' ? ada : bob;
      await site.rows(`UPDATE agents SET desired = 'deleted' WHERE id = '${removed.id}'`);
      expect(await delivery.deliver(id, signal)).toBe('dead');
      expect(received).toEqual([]);
      const [webhook] = await site.rows(
        `SELECT dead_in_row FROM bus_webhooks WHERE agent_id = '${bob.id}'`,
      );
      expect(webhook).toEqual({ dead_in_row: 0 });
    },
  );

  test.each(LYING_ANSWERS.map((addresses) => [addresses.join(', '), addresses] as const))(
    'a delivery is refused when the name now resolves to %s',
    { tags: 'attack' },
    async (_text, addresses) => {
      await hook(bob, 'http://name.test/hook');
      const { id, messageId } = await sent();
      const lied = deliveryWith({ resolve: () => Promise.resolve(addresses) });
      await expect(lied.deliver(id, signal)).rejects.toThrow('not allowed');
      const { body } = await shown(messageId);
      expect(body.attempts).toMatchObject([{ status: null, error: expect.any(String) }]);
      expect(received).toEqual([]);
    },
  );
});

describe('the order of a pair', () => {
  const started: string[] = [];
  const runs = {
    start: (id: string) => {
      started.push(id);
      return Promise.resolve(true);
    },
  };
  const handAll = async () => {
    started.splice(0);
    await handOver(site.database.db, busMessages(runs));
    const handed = started.filter((id) => ids.includes(id));
    return handed.sort((one, other) => Number(one) - Number(other));
  };
  let ids: string[] = [];

  test('hands a message over after its predecessor was tried', async () => {
    await hook(bob);
    const [first, second, third] = [await sent(), await sent(), await sent()];
    const ofOther = await sent(await site.agent());
    ids = [first, second, third, ofOther].map(({ id }) => id);
    expect(await handAll()).toEqual([first.id, ofOther.id]);
    answers = [500];
    await expect(delivery.deliver(first.id, signal)).rejects.toThrow(NotDeliveredError);
    expect(await handAll()).toEqual([second.id]);
    await delivery.deliver(second.id, signal);
    expect(await handAll()).toEqual([third.id]);
  });

  test('hands a message over after its predecessor has ended untried', async () => {
    const [first, second] = [await sent(), await sent()];
    ids = [first.id, second.id];
    expect(await handAll()).toEqual([first.id]);
    expect(await delivery.giveUp(first.id)).toBe('dead');
    expect(await handAll()).toEqual([second.id]);
  });

  test('concurrent messages of a pair are handed over one after the other', async () => {
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => sent()));
    ids = all.map(({ id }) => id).sort((one, other) => Number(one) - Number(other));
    const seen: string[] = [];
    for (const _ of ids) {
      const handed = await handAll();
      expect(handed).toHaveLength(1);
      seen.push(...handed);
      await delivery.giveUp(handed[0] ?? '');
    }
    expect(seen).toEqual(ids);
  });
});

test('a message that is sent while Temporal is unavailable is accepted, and delivered afterwards', async () => {
  const { id } = await sent();
  const away = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
  const { db } = site.database;
  await expect(handOver(db, busMessages(busMessageRuns(away)))).rejects.toThrow();
  const started: string[] = [];
  const start = (row: string) => Promise.resolve(started.push(row) > 0);
  await handOver(db, busMessages({ start }));
  expect(started).toContain(id);
});

describe('dead letters', () => {
  const mailsTo = ({ owner }: BusAgent) =>
    site.rows(`SELECT kind FROM mails WHERE user_id = '${owner.id}' AND kind = 'bus-dead-letters'`);

  test("dead letters are mailed to the recipient's owner once a day for each agent", async () => {
    await site.rows(`UPDATE users SET email_verified_at = now() WHERE id = '${bob.owner.id}'`);
    for (const _ of [1, 2, 3]) expect(await delivery.giveUp((await sent()).id)).toBe('dead');
    expect(await mailsTo(bob)).toHaveLength(1);
    const second = await site.agent({ owner: bob.owner });
    await delivery.giveUp((await sent(ada, second)).id);
    expect(await mailsTo(bob)).toHaveLength(2);
    await site.rows(
      `UPDATE bus_webhooks SET mailed_at = now() - interval '25 hours' WHERE agent_id = '${bob.id}'`,
    );
    await delivery.giveUp((await sent()).id);
    expect(await mailsTo(bob)).toHaveLength(3);
    expect(await mailsTo(ada)).toHaveLength(0);
  });

  test('dead letters are not mailed to an address that is not verified', async () => {
    await delivery.giveUp((await sent()).id);
    expect(await mailsTo(bob)).toHaveLength(0);
  });

  test('dead letters pause the webhook after twenty in a row', async () => {
    await hook(bob);
    const state = async () => {
      const [row] = await site.rows<{ dead_in_row: number; paused: boolean }>(
        `SELECT dead_in_row, paused_at IS NOT NULL AS paused FROM bus_webhooks
          WHERE agent_id = '${bob.id}'`,
      );
      return row;
    };
    await delivery.giveUp((await sent()).id);
    await delivery.deliver((await sent()).id, signal);
    expect(await state()).toEqual({ dead_in_row: 0, paused: false });
    for (let count = 1; count < MAX_DEAD_IN_ROW; count++) {
      await delivery.giveUp((await sent()).id);
    }
    expect(await state()).toEqual({ dead_in_row: 19, paused: false });
    await delivery.giveUp((await sent()).id);
    expect(await state()).toEqual({ dead_in_row: 20, paused: true });
  });
});

describe('a message', () => {
  const redeliver = (messageId: string, as: BusAgent) =>
    site.backend(as.owner, 'POST', `/api/underground/bus/messages/${messageId}/redeliver`);

  test('a message is shown to both parties only', { tags: 'attack' }, async () => {
    const { messageId } = await sent();
    expect((await shown(messageId, ada)).status).toBe(200);
    expect((await shown(messageId, bob)).status).toBe(200);
    const other = await site.agent();
    expect((await shown(messageId, other)).status).toBe(404);
    expect((await redeliver(messageId, other)).status).toBe(404);
  });

  test('a message is identified by its sender if two senders used the same id', async () => {
    const { messageId } = await sent();
    const carl = await site.agent();
    await sent(carl, bob, { messageId });
    expect((await shown(messageId, bob, `?from=${ada.id}`)).body.from).toBe(ada.id);
    expect((await shown(messageId, bob, `?from=${carl.id}`)).body.from).toBe(carl.id);
    expect((await shown(messageId, bob, '?from=nobody')).status).toBe(404);
  });

  test('a message is delivered again to its recipient', async () => {
    await hook(bob);
    const { id, messageId } = await sent();
    await delivery.deliver(id, signal);
    const refused = await redeliver(messageId, ada);
    expect([refused.status, refused.body.code]).toEqual([409, 'MESSAGE_DELIVERED']);
    const again = await redeliver(messageId, bob);
    expect([again.status, again.body]).toEqual([202, { messageId, status: 'queued' }]);
    expect(await delivery.deliver(id, signal)).toBe('delivered');
    expect(received.map(({ headers }) => headers['x-bus-message-id'])).toEqual([
      messageId,
      messageId,
    ]);
    expect((await shown(messageId)).body.attempts).toHaveLength(2);
  });

  test('a message is delivered again by its sender when it is dead', async () => {
    const { id, messageId } = await sent();
    await delivery.giveUp(id);
    expect((await redeliver(messageId, ada)).status).toBe(202);
    expect(await rowOf(id)).toMatchObject({ status: 'queued' });
    expect((await redeliver(messageId, ada)).status).toBe(202);
  });
});
