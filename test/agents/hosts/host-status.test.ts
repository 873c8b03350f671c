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

describe('host status', () => {
  test('marks a host as silent after 45 s', () => {
    expect(statusOf(host('a', { unseenSeconds: 44.999 }))).toBe('ready');
    expect(statusOf(host('a', { unseenSeconds: 45 }))).toBe('silent');
  });

  test('reports an unavailable engine unless the host is silent', () => {
    const away = host('a', { engineAvailable: false });
    expect(statusOf(away)).toBe('engine_unavailable');
    expect(statusOf({ ...away, unseenSeconds: 60 })).toBe('silent');
  });

  test('places no agents on a host with a low disk', () => {
    const low = host('a', { diskLow: true });
    expect(statusOf(low)).toBe('disk_low');
    expect(leastLoaded([low])).toBeUndefined();
    expect(leastLoaded([low, host('b', { agents: 9 })])?.id).toBe('b');
  });

  test('counts no free places on a host with more agents than its capacity', () => {
    expect(freePlaces({ capacity: 2, agents: 5 })).toBe(0);
  });
});

describe('placement', () => {
  test('prefers the host with most free places, not the host with fewest agents', () => {
    const hosts = [host('a', { agents: 1 }), host('b', { capacity: 20, agents: 5 })];
    expect(leastLoaded(hosts)?.id).toBe('b');
  });

  test('prefers the first id among hosts with equally many free places', () => {
    expect(leastLoaded([host('b'), host('a'), host('c')])?.id).toBe('a');
  });

  test('skips hosts that are silent, full, cordoned, in removal or without Docker', () => {
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
