import { addressRange } from '../../docker/containers/address-range.js';

/** Addresses in a /28. */
const SIZE = 16;
/** Number of /28 networks in a /16. */
const PLACES = 4096;

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** Returns the n-th /28 of a /16 `pool` for the n-th port of the range: reserving the port reserves both. */
export function subnetOf(port: number, firstPort: number, pool: string): string {
  const [first = '10', second = '231'] = pool.split('.');
  // Covers ports below the range too: an agent keeps its port when the range changes.
  const offset = ((port - firstPort + 65_536) % PLACES) * SIZE;
  return `${first}.${second}.${offset >> 8}.${offset & 255}/28`;
}

/** Returns the ports of the range whose /28 overlaps these networks. */
export function portsWithin(
  subnets: readonly string[],
  firstPort: number,
  pool: string,
): PortRange[] {
  const { first: base } = addressRange(pool);
  return subnets.flatMap((subnet) => {
    const used = addressRange(subnet);
    const first = Math.max(0, Math.floor((used.first - base) / SIZE));
    const last = Math.min(PLACES - 1, Math.floor((used.last - base) / SIZE));
    return first <= last ? [{ first: firstPort + first, last: firstPort + last }] : [];
  });
}
