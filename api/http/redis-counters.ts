import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { ClientNetworks } from '../../src/platform/http/client-networks.js';
import { countedClient, type Counters, type RateLimit, type Taken } from './rate-limit.js';

/**
 * Checks all limits of a request, then counts in all or none: one atomic round trip, so that all processes
 * together admit exactly `max`. The last argument is 0 to read only. Returns 1 if rejected, then count and
 * milliseconds left per limit.
 */
const TAKE = `
local counts, refused, by = {}, false, tonumber(ARGV[#ARGV])
for i, key in ipairs(KEYS) do
  counts[i] = tonumber(redis.call('GET', key) or '0')
  if counts[i] >= tonumber(ARGV[2 * i - 1]) then refused = true end
end
local result = { refused and 1 or 0 }
for i, key in ipairs(KEYS) do
  local window = tonumber(ARGV[2 * i])
  if not refused and by > 0 then counts[i] = redis.call('INCR', key) end
  local left = redis.call('PTTL', key)
  if left == -1 then redis.call('PEXPIRE', key, window) end
  if left < 0 then left = window end
  result[2 * i] = counts[i]
  result[2 * i + 1] = left
end
return result`;

const TIMEOUT_MS = 500;
const RETRY_AFTER_MS = 1_000;

interface Options {
  readonly url: string;
  readonly namespace: string;
  /** Per-process counters while Redis is unavailable. */
  readonly memory: Counters;
  readonly log: Logger;
}

/** Counts in Redis; while Redis is unavailable, each process counts by itself, rather than reject all requests. */
export class RedisCounters implements Counters {
  readonly #options: Options;
  readonly #redis: Redis;
  #skipUntil = 0;
  #failing = false;

  constructor(options: Options) {
    this.#options = options;
    this.#redis = new Redis(options.url, {
      connectTimeout: TIMEOUT_MS,
      commandTimeout: TIMEOUT_MS,
      maxRetriesPerRequest: 0,
      retryStrategy: (attempt) => Math.min(attempt * 100, RETRY_AFTER_MS),
    });
    this.#redis.on('error', (error: Error) => this.#failed(error));
  }

  async take(client: ClientNetworks, limits: readonly RateLimit[], by: 0 | 1 = 1): Promise<Taken> {
    if (performance.now() < this.#skipUntil) return this.#options.memory.take(client, limits, by);
    try {
      const taken = await this.#takeShared(client, limits, by);
      this.#recovered();
      return taken;
    } catch (error) {
      this.#failed(error);
      return this.#options.memory.take(client, limits, by);
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    await this.#options.memory.close();
  }

  async #takeShared(
    client: ClientNetworks,
    limits: readonly RateLimit[],
    by: 0 | 1,
  ): Promise<Taken> {
    const { namespace } = this.#options;
    // The braces (hash tag) place all keys of a request on one Redis Cluster node.
    const keys = limits.map(
      (limit) =>
        `limit:{${client.site}}:${countedClient(client, limit)}:${namespace}:${limit.name}`,
    );
    const bounds = limits.flatMap(({ max, windowMs }) => [max, windowMs]);
    const result = await this.#redis.eval(TAKE, keys.length, ...keys, ...bounds, by);
    if (!isNumbers(result) || result.length !== 1 + 2 * limits.length) {
      throw new TypeError('Redis returned a count in an unknown format');
    }
    const counts = limits.map((limit, index) => {
      const [count = limit.max, resetMs = limit.windowMs] = result.slice(1 + 2 * index);
      return { limit, remaining: Math.max(0, limit.max - count), resetMs };
    });
    return { refused: result[0] === 1, counts };
  }

  #failed(error: unknown): void {
    this.#skipUntil = performance.now() + RETRY_AFTER_MS;
    if (this.#failing) return;
    this.#failing = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.log.warn({ reason }, 'Redis is unavailable: limits count in this process only');
  }

  #recovered(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#options.log.info('Redis is available again: limits are shared');
  }
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'number');
}
