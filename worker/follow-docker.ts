import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Supervisors } from '../temporal/supervisors.js';
import { supervisedOf } from '../src/agents/supervisors.js';
import { findAgent } from '../src/agents/agents.js';
import { agentsToRun } from '../src/agents/host-agents.js';
import type { ContainerDeath } from '../src/containers/death-cause.js';
import type { DockerHost } from '../src/containers/docker-host.js';
import type { Database } from '../src/database/database.js';
import { pause } from '../src/pause.js';

/**
 * A Docker daemon that shuts down stops its containers before its connections: what ended so long
 * before the stream was lost is its doing.
 */
const SHUTDOWN_MS = 30_000;

/**
 * Nobody knows what a worker that starts has missed: a crash, or the restart of the whole host. So
 * nothing counts that ended before. An agent that keeps on crashing is counted from here on.
 */
const SINCE_EVER = 0;

/** Pauses between the attempts at one call. When all have failed it is left to the reconciliation. */
const PAUSES_MS = [500, 2_000, 8_000];

const RESTART_PAUSE_MS = 5_000;

/** Calls to Temporal at a time. */
const limit = pLimit(20);

export interface FollowDependencies {
  readonly database: Database;
  readonly supervisors: Pick<Supervisors, 'containerEnded' | 'dockerReturned'>;
  readonly docker: Pick<DockerHost, 'containers' | 'events'>;
  readonly log: Logger;
  /** The Docker host that this worker stands beside. */
  readonly host: string;
}

/**
 * Tells the supervisors of this host's agents at once that a container ended, and that Docker
 * is back after it was away. Resolves when the signal has aborted and nothing is under way.
 */
export async function followDocker(
  dependencies: FollowDependencies,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await follow(dependencies, signal);
    } catch (error) {
      dependencies.log.error({ err: error }, 'Docker cannot be followed, and is tried again');
      await pause(RESTART_PAUSE_MS, signal);
    }
  }
}

async function follow(dependencies: FollowDependencies, signal: AbortSignal): Promise<void> {
  const { docker, log } = dependencies;
  const underWay = new Set<Promise<void>>();
  const run = (what: string, work: () => Promise<void>, until: AbortSignal) => {
    const running = retrying(work, until)
      .catch((error: unknown) => {
        if (!until.aborted) log.warn({ err: error }, `${what} could not be told`);
      })
      .finally(() => underWay.delete(running));
    underWay.add(running);
  };

  let returning = new AbortController();
  let awayFrom = Number.POSITIVE_INFINITY;
  try {
    for await (const event of docker.events(signal)) {
      switch (event.kind) {
        case 'lost':
          log.warn({ reason: event.reason }, 'Docker cannot be heard');
          break;
        case 'connected': {
          log.info('Docker is heard');
          // One that has not come to its end knows an older state: the new one takes it over.
          returning.abort();
          returning = new AbortController();
          const { lostAt } = event;
          const from = lostAt === undefined ? SINCE_EVER : lostAt - SHUTDOWN_MS;
          awayFrom = Math.min(awayFrom, from);
          const until = AbortSignal.any([signal, returning.signal]);
          run(
            'the return of Docker',
            async () => {
              await signalDockerReturned(dependencies, awayFrom);
              awayFrom = Number.POSITIVE_INFINITY;
            },
            until,
          );
          break;
        }
        case 'death':
          run(
            'the end of a container',
            () => limit(signalContainerEnded, dependencies, event),
            signal,
          );
      }
    }
  } finally {
    returning.abort();
    await Promise.all(underWay);
  }
}

async function signalContainerEnded(
  { database, supervisors, host, log }: FollowDependencies,
  { agentId, userId, containerId, cause, exitCode, at }: ContainerDeath,
): Promise<void> {
  const agent = await findAgent(database.asUser(userId), agentId);
  if (agent?.host !== host || agent.desired !== 'running' || agent.startedAt === null) return;
  log.info({ agentId, cause, exitCode }, 'a container has ended');
  await supervisors.containerEnded(supervisedOf(agent), { containerId, cause, exitCode, at });
}

async function signalDockerReturned(
  { database, docker, supervisors, host }: FollowDependencies,
  awayFrom: number,
): Promise<void> {
  const running = await docker.containers.running();
  for await (const agents of agentsToRun(database, host)) {
    const ended = agents.filter(({ id }) => !running.has(id));
    const back = { awayFrom };
    await Promise.all(
      ended.map((agent) => limit(() => supervisors.dockerReturned(supervisedOf(agent), back))),
    );
  }
}

async function retrying(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (const pauseMs of PAUSES_MS) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch {
      // The last attempt's failure is the one that is told.
      await pause(pauseMs, signal);
    }
  }
  signal.throwIfAborted();
  await work();
}
