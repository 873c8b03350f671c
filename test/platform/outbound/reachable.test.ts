import { describe, expect, test } from 'vitest';
import { allowedDestinations } from '../../../src/platform/outbound/allowed-places.js';
import { isGloballyReachable, isReachAllowed } from '../../../src/platform/outbound/reachable.js';

describe('globally reachable addresses', { tags: 'attack' }, () => {
  test.each([
    ['private', '10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1'],
    ['local to this machine', '127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 :: ::1'],
    ['link-local, with metadata', '169.254.169.254 169.254.170.2 fe80::1 febf::1 fe80::1%eth0'],
    ['metadata elsewhere', '100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254'],
    ['shared or given to nobody', '100.64.0.1 198.18.0.1 198.51.100.1 203.0.113.9 192.0.2.1'],
    [
      'multicast, broadcast or reserved',
      '224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 ff02::1',
    ],
    ['local in IPv6', 'fc00::1 fdff::1 fec0::1 100::1 5f00::1 2001:db8::1 3fff::1'],
    ['IPv4 in IPv6', '::ffff:8.8.8.8 ::ffff:127.0.0.1 ::ffff:a00:1 ::8.8.8.8 ::127.0.0.1'],
    ['IPv4 behind NAT64', '64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8'],
    ['IPv4 in a tunnel', '2002:7f00:1::1 2002:808:808::1 2001:0:808:808::1 2001:1ff::1'],
    ['IPv4 behind ISATAP', '2600::5efe:10.0.0.1 2600::200:5efe:10.0.0.1'],
    ['no address', 'localhost 127.1 0x7f000001 1.2.3.4.5 1.2.3'],
  ])('refuses addresses that are %s', (_what, addresses) => {
    const reached = addresses.split(' ').filter(isGloballyReachable);
    expect(reached).toEqual([]);
  });

  test('accepts public addresses', () => {
    const addresses = '8.8.8.8 1.1.1.1 172.32.0.1 2606:4700::1111 2a00:1450::1 64:ff9b::8.8.8.8';
    expect(addresses.split(' ').filter((each) => !isGloballyReachable(each))).toEqual([]);
  });
});

describe('OUTBOUND_ALLOW', () => {
  const allowed = (text: string) => allowedDestinations.parse(text);

  test('allows networks, addresses, and addresses with ports', () => {
    const places = allowed('10.1.0.0/16, 192.168.1.5, 127.0.0.1:8080, [::1]:8080, fd00::/8');
    const reached = [
      ['10.1.2.3', 1],
      ['192.168.1.5', 80],
      ['127.0.0.1', 8080],
      ['::1', 8080],
      ['0:0:0:0:0:0:0:1', 8080],
      ['fd12::1', 443],
    ] as const;
    expect(reached.filter(([address, port]) => !isReachAllowed(address, port, places))).toEqual([]);
  });

  test('allows no other addresses and ports', () => {
    const places = allowed('10.1.0.0/16,127.0.0.1:8080,[::1]:8080,fe80::/10');
    const refused = [
      ['10.2.0.1', 80],
      ['127.0.0.1', 8081],
      ['127.0.0.2', 8080],
      ['::1', 80],
      ['::ffff:127.0.0.1', 8080],
      ['fe80::1%eth0', 80],
    ] as const;
    expect(refused.filter(([address, port]) => isReachAllowed(address, port, places))).toEqual([]);
  });

  test.each([
    'localhost',
    'localhost:80',
    '10.0.0.0/33',
    '127.0.0.1:0',
    '127.0.0.1:70000',
    '1.2.3',
  ])('rejects %s in OUTBOUND_ALLOW', (text) =>
    expect(allowedDestinations.safeParse(text).success).toBe(false),
  );
});
