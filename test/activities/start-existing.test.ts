import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test, vi } from 'vitest';
import { createStartActivities } from '../../activities/starts.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import { MemoryFullError } from '../../src/agents/memory/memory-sizes.js';
import {
  DockerUnavailableError,
  MemoryMissingError,
} from '../../src/docker/containers/container-errors.js';

const AGENT = { agentId: 'a', userId: 'ada', host: 'local' };

/** Runs startExisting on a container of this status and returns its result and the number of starts. */
async function startExisting(
  status: 'created' | 'exited',
  { hasMemory = true, hasRoom = true } = {},
) {
  const start = vi.fn(() => Promise.reject(new DockerUnavailableError('away again')));
  const dependencies = {
    docker: {
      containers: { inspect: () => Promise.resolve({ id: 'c', status }), start },
      volumes: {
        require: () =>
          hasMemory ? Promise.resolve() : Promise.reject(new MemoryMissingError('agent-a')),
      },
    },
    memorySizes: {
      requireRoom: () =>
        hasRoom ? Promise.resolve() : Promise.reject(new MemoryFullError('full')),
    },
    specs: { memoryOf: () => Promise.resolve(AGENT), skillsOf: () => Promise.resolve({}) },
    limiters: hostLimiters(1),
  } as unknown as Parameters<typeof createStartActivities>[0];
  const { startExisting } = createStartActivities(dependencies);
  const answer: unknown = await new MockActivityEnvironment()
    .run(() => startExisting(AGENT))
    .catch((error: unknown) => error);
  return { answer, starts: start.mock.calls.length };
}

test('a container that has never run is recreated, as its creation may have been interrupted', async () => {
  expect(await startExisting('created')).toEqual({ answer: false, starts: 0 });
});

test('a container that has run before is started unchanged', async () => {
  expect(await startExisting('exited')).toMatchObject({ starts: 1 });
});

test('a container whose memory volume is missing is not started, as it would get an empty one', async () => {
  const { answer, starts } = await startExisting('exited', { hasMemory: false });
  expect(answer).toMatchObject({ type: 'MemoryMissingError', nonRetryable: true });
  expect(starts).toBe(0);
});

test('a container whose memory volume is full is not started', async () => {
  const { answer, starts } = await startExisting('exited', { hasRoom: false });
  expect(answer).toMatchObject({ type: 'MemoryFullError', nonRetryable: true });
  expect(starts).toBe(0);
});
