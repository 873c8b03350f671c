import { readFile } from 'node:fs/promises';

/** IPv4 addresses that this machine routes to one of its devices. */
export interface HostRoute {
  /** CIDR notation, such as `10.231.0.16/28`. */
  readonly subnet: string;
  /** Such as `eth0`, a VPN's `tun0`, or the bridge of a removed container engine. */
  readonly device: string;
}

/** The kernel's main routing table, with little-endian hexadecimal numbers: proc_net(5). */
const ROUTES = '/proc/net/route';

/**
 * Reads this machine's routes except the default routes; none if the kernel has no such table, as on macOS,
 * where containers run in a virtual machine.
 */
export async function hostRoutes(): Promise<HostRoute[]> {
  let table: string;
  try {
    table = await readFile(ROUTES, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
  return readRoutes(table);
}

/** Parses the text of `/proc/net/route`, with its heading. */
export function readRoutes(table: string): HostRoute[] {
  const [, ...rows] = table.trimEnd().split('\n');
  return rows.flatMap((row) => {
    const [device = '', destination = '', , , , , , mask = ''] = row.split('\t');
    const bits = bytesOf(mask).reduce(
      (sum, byte) => sum + byte.toString(2).replaceAll('0', '').length,
      0,
    );
    return bits === 0 ? [] : [{ subnet: `${bytesOf(destination).join('.')}/${bits}`, device }];
  });
}

/** Parses the four bytes of an address: `0010E70A` is 10.231.16.0. */
function bytesOf(hex: string): number[] {
  return [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}
