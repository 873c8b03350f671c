import { expect, test } from 'vitest';
import { bridgeName, bridgePrefix } from '../../../src/docker/containers/bridge-name.js';
import { egressRules } from '../../../src/docker/egress/egress-rules.js';

const policy = {
  ai: { address: '172.17.0.1', port: 3002 },
  resolvers: ['192.168.1.1', '169.254.169.254'],
  allow: [{ network: '10.1.0.0/16' }, { network: '10.2.0.3', port: 5432 }],
};

/** Returns the verdict of the first rule that matches a connection opened by an agent. */
function verdict(destination: string, port: number, isHost = false): string {
  const value = (address: string) =>
    address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  for (const rule of egressRules('mine', policy).ipv4) {
    const [, network] = /-d (\S+)/.exec(rule) ?? [];
    const [, dport] = /--dport (\d+)/.exec(rule) ?? [];
    const [address = '', bits = '32'] = (network ?? '0.0.0.0/0').split('/');
    const size = 2 ** (32 - Number(bits));
    const isThere = Math.floor(value(destination) / size) === Math.floor(value(address) / size);
    if (rule.includes('ctdir REPLY') || rule.includes('-p udp')) continue;
    if (rule.includes('--dst-type LOCAL') && !isHost) continue;
    if (isThere && (dport === undefined || Number(dport) === port))
      return rule.slice(rule.indexOf('-j ') + 3);
  }
  return 'RETURN';
}

test('bridge names identify installation and subnet and fit the length limit', () => {
  const [first, last] = ['0.0.0.0/28', '255.255.255.240/28'].map((net) => bridgeName('mine', net));
  expect([first?.length, last?.length]).toEqual([15, 15]);
  expect(first).not.toBe(last);
  expect(last?.startsWith(bridgePrefix('mine'))).toBe(true);
  expect(bridgePrefix('mine')).not.toBe(bridgePrefix('yours'));
});

test.each([
  ['the internet', '1.1.1.1', 443, 'RETURN'],
  ["a cloud's metadata, although it is the name server", '169.254.169.254', 80, 'DROP'],
  ['the name server', '169.254.169.254', 53, 'RETURN'],
  ['another port of a name server', '192.168.1.1', 443, 'DROP'],
  ['another name server on the LAN', '192.168.1.2', 53, 'DROP'],
  ['another agent', '10.231.0.18', 18789, 'DROP'],
  ['a network that is allowed', '10.1.200.3', 22, 'RETURN'],
  ['a port that is allowed', '10.2.0.3', 5432, 'RETURN'],
  ['another port there', '10.2.0.3', 5433, 'DROP'],
  ['carrier-grade NAT', '100.100.100.200', 80, 'DROP'],
  ['loopback', '127.0.0.1', 5432, 'DROP'],
  ['everybody on a wire', '224.0.0.251', 5353, 'DROP'],
  ['nowhere', '0.0.0.0', 80, 'DROP'],
  ['broadcast', '255.255.255.255', 67, 'DROP'],
])("rules decide an agent's connection to %s", { tags: 'attack' }, (_, address, port, expected) => {
  expect(verdict(address, port)).toBe(expected);
});

test.each([
  ['the AI listener', '172.17.0.1', 3002, 'RETURN'],
  ['Temporal on the same address', '172.17.0.1', 7233, 'DROP'],
  ['its public address', '8.8.8.8', 22, 'DROP'],
  ['its address in a network that is allowed', '10.1.0.1', 5432, 'DROP'],
])(
  "rules decide an agent's connection to its host: %s",
  { tags: 'attack' },
  (_, address, port, expected) => {
    expect(verdict(address, port, true)).toBe(expected);
  },
);
