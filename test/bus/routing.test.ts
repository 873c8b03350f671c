import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { routeMessage } from '../../src/bus/route-message.js';
import { threadContext } from '../../src/bus/sealed-contexts.js';
import { busSite, type BusAgent, type BusSite } from './support.js';

let site: BusSite;
let ada: BusAgent;
let bob: BusAgent;

beforeAll(async () => {
  site = await busSite();
});
afterAll(() => site?.close());
beforeEach(async () => {
  [ada, bob] = [await site.agent(), await site.agent()];
});

const route = (id: string) => routeMessage(site.database.db, site.dependencies.secrets, id);

/** Sends and routes a message, twice. @returns its step. */
async function step(from: BusAgent, to: BusAgent, action: string, payload: object) {
  const { answer, message } = await site.send(from, to, { action, payload: { ...payload } });
  expect(answer.status).toBe(200);
  const find = async () => {
    const [row] = await site.rows<{ id: string; step: string | null; routed_at: Date | null }>(
      `SELECT id, step, routed_at FROM bus_messages
        WHERE message_id = '${message.messageId}' AND from_agent = '${from.id}'`,
    );
    return row;
  };
  const id = (await find())?.id ?? '';
  await route(id);
  await route(id);
  const routed = await find();
  expect(routed?.routed_at).not.toBeNull();
  return routed?.step;
}

interface Thread {
  readonly agent_a: string;
  readonly agent_b: string;
  readonly booking_id: string;
  readonly state: string;
  readonly sealed_terms: string;
}

const threads = () =>
  site.rows<Thread>(
    `SELECT * FROM bus_threads WHERE agent_a IN ('${ada.id}', '${bob.id}')
        OR agent_b IN ('${ada.id}', '${bob.id}') ORDER BY booking_id`,
  );
const stateOf = async () => (await threads())[0]?.state;

describe('a negotiation', () => {
  const booking = { bookingId: 'b1' };

  test('a negotiation leads from a request over counters to its end, with alternating steps', async () => {
    expect(await step(ada, bob, 'BOOKING_REQUEST', booking)).toBe('taken');
    expect(await stateOf()).toBe('requested');
    expect(await step(bob, ada, 'BOOKING_COUNTER', booking)).toBe('taken');
    expect(await stateOf()).toBe('countered');
    expect(await step(ada, bob, 'BOOKING_COUNTER', booking)).toBe('taken');
    expect(await step(bob, ada, 'BOOKING_ACCEPT', booking)).toBe('taken');
    expect(await stateOf()).toBe('accepted');
    expect(await step(ada, bob, 'BOOKING_CANCEL', booking)).toBe('taken');
    expect(await stateOf()).toBe('cancelled');
    expect(await threads()).toHaveLength(1);
  });

  test('keeps and marks illegal steps, which change nothing', async () => {
    for (const action of ['ACCEPT', 'COUNTER', 'DECLINE', 'CANCEL']) {
      expect(await step(ada, bob, `BOOKING_${action}`, booking)).toBe('illegal');
    }
    expect(await threads()).toEqual([]);
    await step(ada, bob, 'BOOKING_REQUEST', booking);
    for (const action of ['REQUEST', 'ACCEPT', 'COUNTER', 'DECLINE']) {
      expect(await step(ada, bob, `BOOKING_${action}`, booking)).toBe('illegal');
    }
    expect(await stateOf()).toBe('requested');
    expect(await step(bob, ada, 'BOOKING_DECLINE', booking)).toBe('taken');
    for (const action of ['REQUEST', 'ACCEPT', 'COUNTER', 'DECLINE', 'CANCEL']) {
      expect(await step(ada, bob, `BOOKING_${action}`, booking)).toBe('illegal');
    }
    expect(await stateOf()).toBe('declined');
  });

  test('keeps the last amount, currency and event, sealed', async () => {
    await step(ada, bob, 'BOOKING_REQUEST', { ...booking, amount: 'ten-marked', eventId: 'e1' });
    await step(bob, ada, 'BOOKING_COUNTER', { ...booking, amount: 12.5, currency: 'USDC' });
    const [thread] = await threads();
    const { agent_a: a = '', agent_b: b = '', sealed_terms: sealed = '' } = thread ?? {};
    expect(JSON.stringify(thread)).not.toContain('USDC');
    const terms = site.dependencies.secrets.open(sealed, threadContext(a, b, 'b1'));
    expect(JSON.parse(terms)).toEqual({ amount: 12.5, currency: 'USDC', eventId: 'e1' });
  });

  test('a negotiation is visible to its two parties only', { tags: 'attack' }, async () => {
    await step(ada, bob, 'BOOKING_REQUEST', booking);
    const eve = await site.agent();
    expect(await step(eve, bob, 'BOOKING_ACCEPT', booking)).toBe('illegal');
    expect(await step(eve, ada, 'BOOKING_CANCEL', booking)).toBe('illegal');
    expect(await step(eve, bob, 'BOOKING_REQUEST', booking)).toBe('taken');
    expect((await threads()).map(({ state }) => state)).toEqual(['requested', 'requested']);
  });

  test('a negotiation has no thread without a bookingId, and no step for other actions', async () => {
    expect(await step(ada, bob, 'BOOKING_REQUEST', {})).toBeNull();
    expect(await step(ada, bob, 'BOOKING_REQUEST', { bookingId: 7 })).toBeNull();
    expect(await step(ada, bob, 'BOOKING_REQUEST', { bookingId: 'b'.repeat(257) })).toBeNull();
    expect(await step(ada, bob, 'BOOKING_SMALLTALK', booking)).toBeNull();
    expect(await threads()).toEqual([]);
  });

  test('processes concurrent steps one after the other', async () => {
    await step(ada, bob, 'BOOKING_REQUEST', booking);
    const steps = await Promise.all(
      Array.from({ length: 5 }, () => step(bob, ada, 'BOOKING_ACCEPT', booking)),
    );
    expect(steps.filter((each) => each === 'taken')).toHaveLength(1);
  });
});

describe('an amplification', () => {
  const records = () =>
    site.rows(
      `SELECT post_id, channel, last_action, messages FROM bus_amplifications
        WHERE from_agent = '${ada.id}' ORDER BY channel`,
    );

  test('an amplification has one record for each post and channel', async () => {
    const post = { postId: 'p1', channel: 'one' };
    await step(ada, bob, 'AMPLIFY_POST', post);
    await step(ada, bob, 'AMPLIFY_DONE', post);
    await step(ada, bob, 'AMPLIFY_POST', { ...post, channel: 'two' });
    expect(await records()).toEqual([
      { post_id: 'p1', channel: 'one', last_action: 'AMPLIFY_DONE', messages: 2 },
      { post_id: 'p1', channel: 'two', last_action: 'AMPLIFY_POST', messages: 1 },
    ]);
  });

  test('an amplification has no record without a post or a channel', async () => {
    await step(ada, bob, 'AMPLIFY_POST', { postId: 'p1' });
    await step(ada, bob, 'AMPLIFY_POST', { channel: 'one' });
    expect(await records()).toEqual([]);
  });
});
