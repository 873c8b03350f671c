import { expect, test } from 'vitest';
import { readRoutes } from '../../../src/docker/containers/host-routes.js';

const HEADING =
  'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT';

const row = (device: string, destination: string, mask: string) =>
  `${device}\t${destination}\t00000000\t0001\t0\t0\t0\t${mask}\t0\t0\t0   `;

test('routes of the host are read from the kernel’s table, except the default route', () => {
  const rows = [
    row('eth0', '00000000', '00000000'),
    row('tun0', '1000E70A', 'F0FFFFFF'),
    row('eth1', '0000A8C0', '0000FFFF'),
    row('wire', '07006540', 'FFFFFFFF'),
  ];
  expect(readRoutes([HEADING, ...rows, ''].join('\n'))).toEqual([
    { subnet: '10.231.0.16/28', device: 'tun0' },
    { subnet: '192.168.0.0/16', device: 'eth1' },
    { subnet: '64.101.0.7/32', device: 'wire' },
  ]);
});

test('a host without routes returns none', () => {
  expect(readRoutes(HEADING)).toEqual([]);
});
