import type { Logger } from 'pino';
import { AgentMeter } from '../src/agents/metrics/agent-meter.js';
import { storeSamples } from '../src/agents/metrics/store-samples.js';
import { DockerUnavailableError } from '../src/docker/containers/container-errors.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import { pause } from '../src/lib/pause.js';
import type { Database } from '../src/platform/database/database.js';

const MINUTE_MS = 60_000;

/** Passes begin within this part of a minute, those of different hosts at different times. */
const EARLIEST_MS = 1_000;
const SPREAD_MS = 15_000;

export interface SamplingParts {
  readonly database: Database;
  readonly docker: { readonly containers: Pick<DockerHost['containers'], 'list' | 'reading'> };
  readonly host: string;
  readonly log: Logger;
}

/** Measures a host's agents once in each minute of the clock, until the signal aborts. */
export async function sampleAgents(parts: SamplingParts, signal: AbortSignal): Promise<void> {
  const { containers } = parts.docker;
  const meter = new AgentMeter(containers);
  const offsetMs = EARLIEST_MS + Math.random() * SPREAD_MS;
  // The first reading is what the next is compared with.
  await samplePass(parts, meter);
  while (!signal.aborted) {
    await pause(untilNextMinute(Date.now(), offsetMs), signal);
    if (!signal.aborted) await samplePass(parts, meter);
  }
}

/** Makes one pass for the present minute. A failure leaves a gap in the series. */
export async function samplePass(
  { database, host, log }: SamplingParts,
  meter: AgentMeter,
): Promise<void> {
  const minute = new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS);
  try {
    await storeSamples(database, host, minute, await meter.measure());
  } catch (error) {
    // Without its engine no agent can be measured.
    if (error instanceof DockerUnavailableError) return;
    log.warn({ err: error }, 'agents could not be measured, a minute is missing in their metrics');
  }
}

/** Returns the milliseconds until the offset in the next minute of the clock. */
export const untilNextMinute = (now: number, offsetMs: number): number =>
  MINUTE_MS - (now % MINUTE_MS) + offsetMs;
