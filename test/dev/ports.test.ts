import { expect, test } from 'vitest';
import { freePort } from '../../dev/ports.js';

test('no port is found twice in a row, though nothing listens on the first yet', async () => {
  const ports: number[] = [];
  for (let n = 0; n < 900; n++) ports.push(await freePort());
  expect(new Set(ports).size).toBe(900);
});
