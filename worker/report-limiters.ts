import type { MetricMeter } from '@temporalio/common';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';

const INTERVAL_MS = 5_000;

const KINDS: readonly (keyof HostLimiters)[] = ['calls', 'starts', 'pulls', 'copies', 'heartbeats'];

/** Reports a host's running and waiting work to Prometheus, by kind, until the signal aborts. */
export async function reportLimiters(
  limiters: HostLimiters,
  meter: MetricMeter,
  signal: AbortSignal,
): Promise<void> {
  const taken = meter.createGauge('agent_host_turns_taken', 'int', undefined, 'Turns taken');
  const waiting = meter.createGauge('agent_host_turns_waiting', 'int', undefined, 'Turns awaited');
  for (; !signal.aborted; await pause(jittered(INTERVAL_MS), signal)) {
    for (const kind of KINDS) {
      const { state } = limiters[kind];
      taken.set(state.running, { kind });
      waiting.set(state.waiting, { kind });
    }
  }
}
