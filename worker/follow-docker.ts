import { ENGINE_SHUTDOWN_MS } from '../src/docker/containers/container-events.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';
import { HostEvents, type HostEventsDependencies } from './host-events.js';

/**
 * A worker that starts may have missed a crash or a restart of the host, so no container end before its start
 * counts as a crash. Repeated crashes count from here.
 */
const SINCE_EVER = 0;

const RESTART_PAUSE_MS = 5_000;

export interface FollowDependencies extends HostEventsDependencies {
  readonly docker: HostEventsDependencies['docker'] & Pick<DockerHost, 'events'>;
  readonly onConnected?: () => void;
}

/**
 * Notifies the supervisors of this host's agents at once when a container ends, and when Docker is available
 * again. Resolves when the signal has aborted and no work is in flight.
 */
export async function followDocker(
  dependencies: FollowDependencies,
  signal: AbortSignal,
  hostEvents = new HostEvents(dependencies),
): Promise<void> {
  const notifying = hostEvents.notify(signal);
  while (!signal.aborted) {
    try {
      await follow(dependencies, hostEvents, signal);
    } catch (error) {
      dependencies.log.error({ err: error }, "Docker's events cannot be followed, retrying");
      await pause(jittered(RESTART_PAUSE_MS), signal);
    }
  }
  await notifying;
}

async function follow(
  { docker, log, onConnected }: FollowDependencies,
  hostEvents: HostEvents,
  signal: AbortSignal,
): Promise<void> {
  for await (const event of docker.events(signal)) {
    switch (event.kind) {
      case 'lost':
        log.warn({ reason: event.reason }, "Docker's events are interrupted");
        hostEvents.dockerLost();
        break;
      case 'connected':
        log.info("Docker's events are received");
        onConnected?.();
        hostEvents.dockerReturned(
          event.lostAt === undefined ? SINCE_EVER : event.lostAt - ENGINE_SHUTDOWN_MS,
        );
        break;
      case 'death':
        hostEvents.containerEnded(event);
    }
  }
}
