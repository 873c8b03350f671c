import type { Logger } from 'pino';
import { TooManyRequestsError } from '../../src/lib/errors.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import { AddressGuard } from './address-guard.js';
import { MemoryCounters } from './memory-counters.js';
import { RedisCounters } from './redis-counters.js';
import type { Count, Counters, RateLimit, Taken } from './rate-limit.js';

/** The verdict of the limits: headers for the answer, and the refusal, if any. */
export interface Verdict {
  readonly headers: Readonly<Record<string, string>>;
  readonly refusal: TooManyRequestsError | undefined;
  /** The count that the headers describe. */
  readonly tightest: Count;
}

export interface Limiter {
  /** Applies the overall limit of one address. @returns undefined if the request is within the limit. */
  guard(address: string): Verdict | undefined;
  /**
   * Counts a request of an address or an authenticated caller in the limits; undefined without limits.
   * @param by 0 only reads the counts; default 1.
   */
  check(
    limits: readonly RateLimit[],
    client: string,
    by?: 0 | 1,
  ): Verdict | undefined | Promise<Verdict | undefined>;
  close(): Promise<void>;
}

/** Creates the limiter: counts in Redis if several processes share the limits, in memory otherwise. */
export function createLimiter(options: {
  readonly name: string;
  readonly redisUrl: string | undefined;
  /** Requests per minute from one address. */
  readonly perAddress: number;
  readonly log: Logger;
}): Limiter {
  const { redisUrl } = options;
  const memory = new MemoryCounters();
  const counters: Counters =
    redisUrl === undefined
      ? memory
      : new RedisCounters({ url: redisUrl, namespace: options.name, memory, log: options.log });

  const guard = new AddressGuard(options.perAddress);

  return {
    guard(address) {
      const refused = guard.refuse(address);
      return refused && toVerdict(refused);
    },
    check(limits, client, by) {
      if (limits.length === 0) return undefined;
      const taken = counters.take(networksOf(client), limits, by);
      return taken instanceof Promise ? taken.then(toVerdict) : toVerdict(taken);
    },
    close: () => counters.close(),
  };
}

/** Orders by tightness: least remaining first; among equals, the longest wait. */
const byTightness = (a: Count, b: Count): number =>
  a.remaining - b.remaining || b.resetMs - a.resetMs;

/** Returns the verdict to report: a refusal, else the one of the tighter limit. */
export function tighterOf(passed: Verdict | undefined, then: Verdict): Verdict {
  if (passed === undefined || then.refusal !== undefined) return then;
  return byTightness(passed.tightest, then.tightest) <= 0 ? passed : then;
}

function toVerdict({ refused, counts }: Taken): Verdict | undefined {
  const [tightest] = counts.toSorted(byTightness);
  if (tightest === undefined) return undefined;
  const { limit, remaining } = tightest;
  const resetS = Math.max(1, Math.ceil(Math.floor(tightest.resetMs) / 1000));
  const headers = {
    'RateLimit-Limit': String(limit.max),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': String(resetS),
  };
  const refusal = refused
    ? new TooManyRequestsError(limit.message, { max: limit.max, resetS })
    : undefined;
  return { headers, refusal, tightest };
}
