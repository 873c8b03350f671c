import { addressRange } from '../../docker/containers/address-range.js';

/** Addresses of a /28. */
const SIZE = 16;
/** As many /28 as a /16 has. */
const PLACES = 4096;

/** Ports one after the other, the last one included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/**
 * The /28 network of the agent that holds a port: the n-th port of the range has the n-th /28 of
 * the pool, so that reserving the port reserves both. A /16 has room for 4,096.
 *
 * @param pool a /16 such as `10.231.0.0/16`.
 */
export function subnetOf(port: number, firstPort: number, pool: string): string {
  const [first = '10', second = '231'] = pool.split('.');
  // Below the range, too, for an agent that has its port from before the range was changed.
  const offset = ((port - firstPort + 65_536) % PLACES) * SIZE;
  return `${first}.${second}.${offset >> 8}.${offset & 255}/28`;
}

/** The ports of the range whose /28 overlaps one of these networks. */
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
