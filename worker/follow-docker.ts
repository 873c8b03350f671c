import { ENGINE_SHUTDOWN_MS } from '../src/docker/containers/container-events.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';
import { HostEvents, type HostEventsDependencies } from './host-events.js';

/**
 * Nobody knows what a worker that starts has missed: a crash, or the restart of the whole host. So
 * nothing counts that ended before. An agent that keeps on crashing is counted from here on.
 */
const SINCE_EVER = 0;

const RESTART_PAUSE_MS = 5_000;

export interface FollowDependencies extends HostEventsDependencies {
  readonly docker: HostEventsDependencies['docker'] & Pick<DockerHost, 'events'>;
  /** Is told of every connection to Docker. */
  readonly onConnected?: () => void;
}

/**
 * Tells the supervisors of this host's agents at once that a container ended, and that Docker
 * is back after it was away. Resolves when the signal has aborted and nothing is under way.
 */
export async function followDocker(
  dependencies: FollowDependencies,
  signal: AbortSignal,
  hostEvents = new HostEvents(dependencies),
): Promise<void> {
  const telling = hostEvents.tell(signal);
  while (!signal.aborted) {
    try {
      await follow(dependencies, hostEvents, signal);
    } catch (error) {
      dependencies.log.error({ err: error }, 'Docker cannot be followed, and is tried again');
      await pause(jittered(RESTART_PAUSE_MS), signal);
    }
  }
  await telling;
}

async function follow(
  { docker, log, onConnected }: FollowDependencies,
  hostEvents: HostEvents,
  signal: AbortSignal,
): Promise<void> {
  for await (const event of docker.events(signal)) {
    switch (event.kind) {
      case 'lost':
        log.warn({ reason: event.reason }, 'Docker cannot be heard');
        hostEvents.dockerLost();
        break;
      case 'connected':
        log.info('Docker is heard');
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
