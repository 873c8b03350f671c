import type Docker from 'dockerode';
import { SIGKILL_EXIT_CODE } from './container-view.js';
import { DeathCauses, SIGNAL_COUNTS_NS } from './death-cause.js';
import { asContainerError, type DockerClient } from './docker-client.js';
import { openEvents, readEvents } from './docker-events.js';

const READ_MS = 2_000;

const NS_PER_MS = 1_000_000n;

/**
 * Reports whether an ended container's last end was for lack of memory. Docker's record alone is no proof:
 * its `OOMKilled` never returns to false, so Docker's events decide. An end that Docker's few stored events
 * no longer include counts as a kill.
 */
export async function endedOutOfMemory(
  client: DockerClient,
  { Id: container, State: state }: Docker.ContainerInspectInfo,
): Promise<boolean> {
  if (state.Running || !state.OOMKilled || state.ExitCode !== SIGKILL_EXIT_CODE) return false;
  const since = BigInt(Date.parse(state.FinishedAt)) * NS_PER_MS - SIGNAL_COUNTS_NS;
  const until = BigInt(Date.now()) * NS_PER_MS;
  const signal = AbortSignal.timeout(READ_MS);
  const causes = new DeathCauses();
  let isOutOfMemory = false;
  try {
    const stream = await openEvents(client, { container, since, until }, { signal });
    for await (const event of readEvents(stream)) {
      const death = causes.record(event);
      if (death) isOutOfMemory = death.cause === 'oom';
    }
  } catch (error) {
    if (!signal.aborted) throw asContainerError(error);
  }
  for (const death of causes.due()) isOutOfMemory = death.cause === 'oom';
  return isOutOfMemory;
}
