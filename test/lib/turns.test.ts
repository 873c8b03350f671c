import { expect, test } from 'vitest';
import { Turns } from '../../src/lib/turns.js';

test('works of one key run one after the other, also after a failure', async () => {
  const turns = new Turns();
  const ran: string[] = [];
  const work = (name: string) => async () => {
    ran.push(`${name} begins`);
    await Promise.resolve();
    ran.push(`${name} ends`);
    if (name === 'a') throw new Error('a failed');
    return name;
  };
  const all = await Promise.allSettled(['a', 'b', 'c'].map((name) => turns.run('k', work(name))));
  expect(all.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(ran).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

test('works of different keys run at once', async () => {
  const turns = new Turns();
  let end = () => {};
  const first = turns.run('a', () => new Promise<void>((resolve) => (end = resolve)));
  expect(await turns.run('b', () => Promise.resolve('done'))).toBe('done');
  end();
  await first;
});
