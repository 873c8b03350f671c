import { createHash } from 'node:crypto';

/** Below the ports that the kernel gives to whoever asks for any. */
const FIRST_PORT = 20_000;
const PORTS = 100;
/** 10.16 to 10.127; tests' single networks are from 10.232 on, and the product's own pool is 10.231. */
const FIRST_POOL = 16;
/** What `vitest.config.ts` runs at a time at most, and what one of them has before it begins anew. */
const WORKERS = 8;
const PLACES = 14;

let given = 0;

/**
 * Settings of a platform on an engine that it shares: ports and networks of its agents, which no other
 * platform has that is tested at the same time. Two that meet all the same take the next ones; what a
 * test starts by itself does not.
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
