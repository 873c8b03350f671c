import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HostPlaces } from '../../src/pages/host-places.js';

const signal = new AbortController().signal;

test('who gives up while they wait is passed over: their place is not lost', async () => {
  const places = new HostPlaces(1);
  const leave = await places.take('a.test', signal);
  const leaving = new AbortController();
  const first = places.take('a.test', leaving.signal);
  const second = places.take('a.test', signal);
  leaving.abort(new Error('left'));
  await expect(first).rejects.toThrow('left');
  leave();
  (await second)();
});

test('a place that is given back twice is one place', async () => {
  const places = new HostPlaces(1);
  const leave = await places.take('a.test', signal);
  const second = places.take('a.test', signal);
  leave();
  const leaveSecond = await second;
  let isIn = false;
  const third = places.take('a.test', signal).then((leaveThird) => {
    isIn = true;
    leaveThird();
  });
  leave();
  await turn();
  expect(isIn).toBe(false);
  leaveSecond();
  await third;
});

test('each host has its own, and a place goes to who has waited longest', async () => {
  const places = new HostPlaces(1);
  const leave = await places.take('a.test', signal);
  (await places.take('b.test', signal))();
  const order: string[] = [];
  const waiting = ['one', 'two'].map(async (name) => {
    const leaveIt = await places.take('a.test', signal);
    order.push(name);
    leaveIt();
  });
  leave();
  await Promise.all(waiting);
  expect(order).toEqual(['one', 'two']);
});
