import { ENGINE_SHUTDOWN_MS } from '../src/containers/container-events.js';
import type { DockerHost } from '../src/containers/docker-host.js';
import { pause } from '../src/pause.js';
import { HostNews, type NewsDependencies } from './host-news.js';

/**
 * Nobody knows what a worker that starts has missed: a crash, or the restart of the whole host. So
 * nothing counts that ended before. An agent that keeps on crashing is counted from here on.
 */
const SINCE_EVER = 0;

const RESTART_PAUSE_MS = 5_000;

export interface FollowDependencies extends NewsDependencies {
  readonly docker: NewsDependencies['docker'] & Pick<DockerHost, 'events'>;
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
  news = new HostNews(dependencies),
): Promise<void> {
  const telling = news.tell(signal);
  while (!signal.aborted) {
    try {
      await follow(dependencies, news, signal);
    } catch (error) {
      dependencies.log.error({ err: error }, 'Docker cannot be followed, and is tried again');
      await pause(RESTART_PAUSE_MS, signal);
    }
  }
  await telling;
}

async function follow(
  { docker, log, onConnected }: FollowDependencies,
  news: HostNews,
  signal: AbortSignal,
): Promise<void> {
  for await (const event of docker.events(signal)) {
    switch (event.kind) {
      case 'lost':
        log.warn({ reason: event.reason }, 'Docker cannot be heard');
        news.dockerLost();
        break;
      case 'connected':
        log.info('Docker is heard');
        onConnected?.();
        news.dockerReturned(
          event.lostAt === undefined ? SINCE_EVER : event.lostAt - ENGINE_SHUTDOWN_MS,
        );
        break;
      case 'death':
        news.containerEnded(event);
    }
  }
}
