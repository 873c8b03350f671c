// @module-tag attack
import { ApplicationFailure } from '@temporalio/common';
import { expect, test } from 'vitest';
import { asApplicationFailure } from '../../activities/failures.js';
import { asContainerError } from '../../src/docker/containers/docker-client.js';
import { AgentNotReadyError } from '../../src/agents/watchdog/await-ready.js';
import { AgentGoneError } from '../../src/agents/agents/agents.js';
import { NoPortFreeError } from '../../src/agents/agents/agent-ports.js';
import { SupersededError } from '../../src/agents/watchdog/watchdog-store.js';
import {
  DiskLowError,
  DockerUnavailableError,
  MemoryMissingError,
  PortTakenError,
} from '../../src/docker/containers/container-errors.js';
import { RepairedLocallyError } from '../../src/agents/local-repair/agent-guard.js';
import { failureReason } from '../../workflows/failure-reason.js';

const PATH = '/var/lib/docker/overlay2/3f2a/merged';

async function failure(error: unknown): Promise<ApplicationFailure> {
  try {
    await asApplicationFailure(() => {
      throw error;
    });
  } catch (thrown) {
    if (thrown instanceof ApplicationFailure) return thrown;
  }
  throw new Error('the activity did not throw an ApplicationFailure');
}

test("hides Docker's error text about the host from the agent's owner but keeps it for operators", async () => {
  const said = Object.assign(new Error(`error mounting ${PATH}: no such file`), {
    statusCode: 500,
  });
  const reported = await failure(asContainerError(said));
  expect(failureReason(reported)).toBe('The container engine refused this step (DOCKER_REFUSED)');
  expect(reported.type).toBe('DockerRefusedError');
  expect(reported.cause?.cause).toBe(said);
});

test("hides a library's error text from the agent's owner", async () => {
  const said = new TypeError(`cannot read ${PATH}`);
  const reported = await failure(said);
  expect(failureReason(reported)).toBe('The platform failed in this step (INTERNAL_ERROR)');
  expect(reported.cause).toBe(said);
});

test("shows the platform's own error text to the agent's owner", async () => {
  const reported = await failure(new DiskLowError(1, 2));
  expect(failureReason(reported)).toContain("the host's disk are free");
  expect(reported.nonRetryable).toBe(true);
});

test.each([
  new AgentGoneError('a'),
  new AgentNotReadyError('The container no longer exists'),
  new MemoryMissingError('agent-a'),
  new NoPortFreeError('local'),
  new PortTakenError(1),
  new RepairedLocallyError(),
  new SupersededError('a'),
])('an error that a retry cannot fix is not retried: $name', async (error) => {
  expect(await failure(error)).toMatchObject({ type: error.name, nonRetryable: true });
});

test('an error that a retry may fix is retried', async () => {
  const reported = await failure(new DockerUnavailableError('away'));
  expect(reported).toMatchObject({ type: 'DockerUnavailableError', nonRetryable: false });
});
