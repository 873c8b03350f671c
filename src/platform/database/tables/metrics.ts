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

/** Sums of samples by steps of series. */
export const agentSampleSums = table(
  'agent_sample_sums',
  {
    agentId: key(text()),
    /** Seconds. */
    step: key(integer()),
    /** Beginning of the step. */
    at: key(timestamp()),
    userId: text(),
    samples: integer(),
    cpuPercent: double(),
    memoryBytes: double(),
    networkIn: double(),
    networkOut: double(),
  },
  [index('agent_sample_sums_at', ['step', 'at'])],
  summedThrough('user_id'),
);
