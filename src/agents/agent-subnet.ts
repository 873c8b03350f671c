/**
 * The /28 network of the agent that holds a port: the n-th port of the range has the n-th /28 of
 * the pool, so that reserving the port reserves both. A /16 has room for 4,096.
 *
 * @param pool a /16 such as `10.231.0.0/16`.
 */
export function subnetOf(port: number, firstPort: number, pool: string): string {
  const [first = '10', second = '231'] = pool.split('.');
  // Below the range, too, for an agent that has its port from before the range was changed.
  const offset = ((port - firstPort + 65_536) % 4096) * 16;
  return `${first}.${second}.${offset >> 8}.${offset & 255}/28`;
}
