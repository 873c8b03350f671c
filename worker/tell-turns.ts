import type { MetricMeter } from '@temporalio/common';
import type { HostTurns } from '../src/agents/watchdog/host-turns.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';

const INTERVAL_MS = 5_000;

const KINDS: readonly (keyof HostTurns)[] = ['calls', 'starts', 'pulls', 'copies', 'heartbeats'];

/** Exports to Prometheus how many tasks of a host run and wait, by kind, until the signal aborts. */
export async function tellTurns(
  turns: HostTurns,
  meter: MetricMeter,
  signal: AbortSignal,
): Promise<void> {
  const taken = meter.createGauge('agent_host_turns_taken', 'int', undefined, 'Turns taken');
  const waiting = meter.createGauge('agent_host_turns_waiting', 'int', undefined, 'Turns awaited');
  for (; !signal.aborted; await pause(jittered(INTERVAL_MS), signal)) {
    for (const kind of KINDS) {
      const { state } = turns[kind];
      taken.set(state.taken, { kind });
      waiting.set(state.waiting, { kind });
    }
  }
}
