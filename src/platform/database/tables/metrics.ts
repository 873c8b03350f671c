import { summedThrough } from '../schema/policies.js';
import { bigint, double, index, integer, key, table, text, timestamp } from '../schema/table.js';

/** Measurements of agents' containers, one a minute. */
export const agentSamples = table(
  'agent_samples',
  {
    agentId: key(text()),
    at: key(timestamp()),
    userId: text(),
    /** 100 is one core fully used. */
    cpuPercent: double(),
    memoryBytes: bigint(),
    memoryLimitBytes: bigint(),
    /** Bytes since the reading before. */
    networkIn: bigint(),
    networkOut: bigint(),
  },
  [index('agent_samples_at', ['at'])],
  summedThrough('user_id'),
);

/** Sums of an hour's samples. */
export const agentSamplesHourly = table(
  'agent_samples_hourly',
  {
    agentId: key(text()),
    hour: key(timestamp()),
    userId: text(),
    samples: integer(),
    cpuPercent: double(),
    memoryBytes: bigint(),
    networkIn: bigint(),
    networkOut: bigint(),
  },
  [index('agent_samples_hourly_hour', ['hour'])],
  summedThrough('user_id'),
);
