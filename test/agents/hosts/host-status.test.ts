import { describe, expect, test } from 'vitest';
import {
  freePlaces,
  leastLoaded,
  statusOf,
  type HostLoad,
} from '../../../src/agents/hosts/host-status.js';

const host = (id: string, given: Partial<HostLoad> = {}): HostLoad => ({
  id,
  capacity: 10,
  agents: 0,
  engineAvailable: true,
  seenAt: new Date(),
  unseenSeconds: 0,
  cordoned: false,
  removing: false,
  ...given,
});

describe('a host', () => {
  test('is silent from the forty-fifth second on', () => {
    expect(statusOf(host('a', { unseenSeconds: 44.999 }))).toBe('ready');
    expect(statusOf(host('a', { unseenSeconds: 45 }))).toBe('silent');
  });

  test('without its Docker says so, unless nobody is there to say it', () => {
    const away = host('a', { engineAvailable: false });
    expect(statusOf(away)).toBe('engine_unavailable');
    expect(statusOf({ ...away, unseenSeconds: 60 })).toBe('silent');
  });

  test('below the floor of its disk gets no agents', () => {
    const low = host('a', { diskLow: true });
    expect(statusOf(low)).toBe('disk_low');
    expect(leastLoaded([low])).toBeUndefined();
    expect(leastLoaded([low, host('b', { agents: 9 })])?.id).toBe('b');
  });

  test('with more agents than it is to have has no place left', () => {
    expect(freePlaces({ capacity: 2, agents: 5 })).toBe(0);
  });
});

describe('the next agent goes', () => {
  test('where most places are left, not to the host with fewest agents', () => {
    const hosts = [host('a', { agents: 1 }), host('b', { capacity: 20, agents: 5 })];
    expect(leastLoaded(hosts)?.id).toBe('b');
  });

  test('to the first by id of those with as many', () => {
    expect(leastLoaded([host('b'), host('a'), host('c')])?.id).toBe('a');
  });

  test('past hosts that are silent, full or without their Docker', () => {
    const hosts = [
      host('a', { unseenSeconds: 46 }),
      host('b', { engineAvailable: false }),
      host('c', { agents: 10 }),
      host('e', { cordoned: true }),
      host('f', { removing: true }),
      host('d', { agents: 9 }),
    ];
    expect(leastLoaded(hosts)?.id).toBe('d');
    expect(leastLoaded(hosts.slice(0, 5))).toBeUndefined();
    expect(leastLoaded([])).toBeUndefined();
  });
});
