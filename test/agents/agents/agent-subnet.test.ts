import { describe, expect, test } from 'vitest';
import { portsWithin, subnetOf } from '../../../src/agents/agents/agent-subnet.js';

const POOL = '10.231.0.0/16';
const taken = (...subnets: string[]) => portsWithin(subnets, 19_000, POOL);

test('the n-th port has the n-th /28', () => {
  expect(subnetOf(19_000, 19_000, POOL)).toBe('10.231.0.0/28');
  expect(subnetOf(19_017, 19_000, POOL)).toBe('10.231.1.16/28');
});

test('a port outside the current range has a /28 of the same pool', () => {
  expect(subnetOf(18_999, 19_000, POOL)).toBe('10.231.255.240/28');
  expect(subnetOf(19_000 + 4_096, 19_000, POOL)).toBe('10.231.0.0/28');
});

describe('ports that existing networks block', () => {
  test('a network of the same size blocks one port', () => {
    expect(taken(subnetOf(19_017, 19_000, POOL))).toEqual([{ first: 19_017, last: 19_017 }]);
  });

  test('a larger or smaller network blocks the ports of its part of the pool', () => {
    expect(taken('10.231.1.0/24')).toEqual([{ first: 19_016, last: 19_031 }]);
    expect(taken('10.231.0.40/30')).toEqual([{ first: 19_002, last: 19_002 }]);
    expect(taken('10.0.0.0/8')).toEqual([{ first: 19_000, last: 23_095 }]);
  });

  test('a network outside the pool blocks no port', () => {
    expect(taken('172.17.0.0/16', '10.230.255.240/28', '10.232.0.0/28')).toEqual([]);
  });
});
