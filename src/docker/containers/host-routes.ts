import { readFile } from 'node:fs/promises';

/** IPv4 addresses that this machine sends to one of its devices. */
export interface HostRoute {
  /** Such as `10.231.0.16/28`. */
  readonly subnet: string;
  /** Such as `eth0`, a VPN's `tun0`, or the bridge of a container engine that is gone. */
  readonly device: string;
}

/** The kernel's main table, its numbers in hexadecimal with the last byte first: proc_net(5). */
const ROUTES = '/proc/net/route';

/**
 * Where packets of this machine go, the default routes left out. None where the kernel shows no
 * such table, as on macOS, where containers have a machine of their own.
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

/** @param table as `/proc/net/route` shows it, a heading first. */
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

/** The four bytes of `0010E70A`, which is 10.231.16.0. */
function bytesOf(hex: string): number[] {
  return [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}
