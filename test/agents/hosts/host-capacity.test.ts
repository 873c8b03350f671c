import { expect, test } from 'vitest';
import { capacityOf } from '../../../src/agents/hosts/host-capacity.js';

const GIB = 1024 ** 3;

test.each([
  [1, 1],
  [4, 1],
  [8, 2],
  [24, 7],
  [64, 20],
  [512, 170],
])('a host with %i GiB has a capacity of %i agents and memory left over', (gib, agents) => {
  expect(capacityOf(gib * GIB)).toBe(agents);
  if (agents > 1) expect(agents * 3 + 2).toBeLessThanOrEqual(gib);
});
