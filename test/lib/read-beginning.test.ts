import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readPrefix, readTextUpTo } from '../../src/lib/read-beginning.js';

const bodyOf = (...pieces: string[]) => Readable.from(pieces.map((piece) => Buffer.from(piece)));

test('reads a whole body even if a chunk ends in the middle of a character', async () => {
  const [first, second] = [Buffer.from('zwölf').subarray(0, 3), Buffer.from('zwölf').subarray(3)];
  expect(await readTextUpTo(Readable.from([first, second]), 6)).toBe('zwölf');
  expect(await readTextUpTo(bodyOf(), 6)).toBe('');
});

test('stops reading a longer body at the limit and closes the connection', async () => {
  const endless = Readable.from(
    (function* () {
      while (true) yield Buffer.alloc(1_000);
    })(),
  );
  expect((await readPrefix(endless, 2_500)).length).toBe(3_000);
  expect(endless.destroyed).toBe(true);
  await expect(readTextUpTo(bodyOf('12345', '67'), 6)).rejects.toBeInstanceOf(RangeError);
});

test('fails if the body breaks off', async () => {
  const broken = new Readable({ read: () => undefined });
  const reading = readPrefix(broken, 10);
  broken.push('half');
  broken.destroy();
  await expect(reading).rejects.toThrow('broke off');
});
