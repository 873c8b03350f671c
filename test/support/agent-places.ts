import { createHash } from 'node:crypto';

/** Below the kernel's ephemeral port range. */
const FIRST_PORT = 20_000;
const PORTS = 100;
/** 10.16 to 10.127; the tests' single networks begin at 10.232, and the product's own pool is 10.231. */
const FIRST_POOL = 16;
/** Maximum of concurrent workers in `vitest.config.ts`, and places per worker before they repeat. */
const WORKERS = 8;
const PLACES = 14;

let given = 0;

/**
 * Returns port and subnet settings for a platform on a shared engine, distinct from those of other concurrent
 * platforms. On a clash a platform moves to the next free place; resources that a test creates itself do not.
 */
export function agentPlaces(): { AGENT_PORT_RANGE: string; AGENT_SUBNET_POOL: string } {
  const { TEST_SUITE: suite = `${process.ppid}`, VITEST_POOL_ID: worker = '0' } = process.env;
  const begin = createHash('sha256').update(suite).digest().readUInt32BE();
  const place = (Number(worker) % WORKERS) * PLACES + (given++ % PLACES);
  const index = (begin + place) % (WORKERS * PLACES);
  const first = FIRST_PORT + index * PORTS;
  return {
    AGENT_PORT_RANGE: `${first}-${first + PORTS - 1}`,
    AGENT_SUBNET_POOL: `10.${FIRST_POOL + index}.0.0/16`,
  };
}
