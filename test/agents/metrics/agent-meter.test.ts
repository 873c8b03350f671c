import { expect, test } from 'vitest';
import { AgentMeter } from '../../../src/agents/metrics/agent-meter.js';
import {
  DockerRefusedError,
  DockerUnavailableError,
} from '../../../src/docker/containers/container-errors.js';
import type {
  ContainerReading,
  ContainerSummary,
} from '../../../src/docker/containers/container-view.js';
import { untilNextMinute } from '../../../worker/sample-agents.js';

const START = Date.parse('2026-11-28T10:00:00Z');

const container = (id: string, row: Partial<ContainerSummary> = {}): ContainerSummary => ({
  ...{ id, agentId: `agent-${id}`, userId: 'ada', status: 'running', image: 'image' },
  createdAt: new Date(START).toISOString(),
  ...row,
});

/** The counters of a container after minutes of work. */
const after = (minutes: number, row: Partial<ContainerReading> = {}): ContainerReading => ({
  cpuMs: minutes * 15_000,
  memoryBytes: 1_000,
  memoryLimitBytes: 4_000,
  networkReceivedBytes: minutes * 600,
  networkSentBytes: minutes * 60,
  readAt: START + minutes * 60_000,
  ...row,
});

/** Returns a meter of containers with readings that the test sets. */
function meterOf(containers: readonly ContainerSummary[]) {
  const readings = new Map<string, ContainerReading | Error>();
  const meter = new AgentMeter({
    list: () => Promise.resolve([...containers]),
    reading: (id) => {
      const reading = readings.get(id);
      return reading instanceof Error ? Promise.reject(reading) : Promise.resolve(reading);
    },
  });
  const measure = (row: Readonly<Record<string, ContainerReading | Error>>) => {
    readings.clear();
    for (const [id, reading] of Object.entries(row)) readings.set(id, reading);
    return meter.measure();
  };
  return { measure, meter };
}

test('a sample is the work between two readings', async () => {
  const { measure } = meterOf([container('a')]);
  expect(await measure({ a: after(1) })).toEqual([]);
  expect(await measure({ a: after(2, { memoryBytes: 2_000 }) })).toEqual([
    {
      ...{ agentId: 'agent-a', userId: 'ada', cpuPercent: 25 },
      ...{ memoryBytes: 2_000, memoryLimitBytes: 4_000, networkIn: 600, networkOut: 60 },
    },
  ]);
});

test.each([
  ['that was started again', after(2, { cpuMs: 10, networkReceivedBytes: 0, networkSentBytes: 0 })],
  ['whose network was made again', after(2, { networkSentBytes: 1 })],
  ['whose reading is late', after(10)],
  ['whose reading is refused', new DockerRefusedError(409, 'being removed')],
  ['whose reading takes too long', new DockerUnavailableError('too slow')],
])('a container %s has no sample, and the others have theirs', async (_, reading) => {
  const { measure } = meterOf([container('a'), container('b')]);
  await measure({ a: after(1), b: after(1) });
  const samples = await measure({ a: reading, b: after(2) });
  expect(samples.map(({ agentId }) => agentId)).toEqual(['agent-b']);
});

test('a container without a reading in between has no sample', async () => {
  const { measure } = meterOf([container('a')]);
  await measure({ a: after(1) });
  expect(await measure({})).toEqual([]);
  expect(await measure({ a: after(3) })).toEqual([]);
  expect(await measure({ a: after(4) })).toHaveLength(1);
});

test('containers that do not run, or are no agent of ours, are not read', async () => {
  const { measure } = meterOf([
    container('stopped', { status: 'exited' }),
    container('foreign', { agentId: '' }),
  ]);
  for (const minutes of [1, 2]) {
    const reading = after(minutes);
    expect(await measure({ stopped: reading, foreign: reading })).toEqual([]);
  }
});

test('an unavailable engine ends the pass', async () => {
  const away = new DockerUnavailableError('away');
  const meter = new AgentMeter({
    list: () => Promise.reject(away),
    reading: () => Promise.resolve(undefined),
  });
  await expect(meter.measure()).rejects.toBe(away);
});

test('a pass begins once in each minute of the clock', () => {
  for (const [now, offset, expected] of [
    [START, 1_000, 61_000],
    [START + 1_000, 1_000, 60_000],
    [START + 59_999, 16_000, 16_001],
  ] as const) {
    expect(untilNextMinute(now, offset)).toBe(expected);
  }
});
