import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Supervisors } from '../temporal/supervisors.js';
import { findAgent } from '../src/agents/agents/agents.js';
import { agentsToRun } from '../src/agents/watchdog/host-agents.js';
import { supervisedOf } from '../src/agents/operations/supervisors.js';
import { setBounded } from '../src/lib/bounded-map.js';
import type { ContainerDeath } from '../src/docker/containers/death-cause.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { Database } from '../src/platform/database/database.js';
import { UnavailableError } from '../src/lib/errors.js';
import { pause } from '../src/lib/pause.js';

/** Calls to Temporal at a time. */
const AT_ONCE = 20;

/** Between two attempts, as long as PostgreSQL or Temporal are away; half of it is by chance. */
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 5_000;

/** Nothing is to be told: something new ends the pause. */
const IDLE_MS = 24 * 60 * 60_000;

/** Ends that nobody could be told of yet, one for each agent: more than a host has agents. */
const MAX_ENDS = 10_000;

export interface HostEventsDependencies {
  readonly database: Database;
  readonly supervisors: Pick<Supervisors, 'containerEnded' | 'dockerReturned'>;
  readonly docker: Pick<DockerHost, 'available' | 'containers'>;
  readonly log: Logger;
  /** The Docker host that this worker stands beside. */
  readonly host: string;
}

/** Docker that is back. */
interface Return {
  /** Unix milliseconds: what ended since then did so because of it. */
  readonly awayFrom: number;
  /** Ids of the agents whose supervisors have heard of it. */
  readonly told: Set<string>;
  /** Of those that could not be told yet. */
  readonly untold: Set<string>;
}

/**
 * What a Docker host's agents' supervisors have to hear, kept until they have, however long
 * PostgreSQL or Temporal are away. First comes that Docker is back: what ended while it was away was
 * not the agents' doing, so no end is told before that.
 */
export class HostEvents {
  #return: Return | undefined;
  /** The last end of each agent's container. */
  readonly #ends = new Map<string, ContainerDeath>();
  /** Aborted once a return of Docker was told everywhere. */
  readonly #told = new AbortController();
  /** Aborted when there is something new, and at the end. */
  #awake = new AbortController();

  readonly #dependencies: HostEventsDependencies;
  readonly #limit = pLimit(AT_ONCE);

  constructor(dependencies: HostEventsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Waits until the supervisors have heard that Docker is there, which a worker that starts finds out
   * first, and no longer than that: whoever looks at containers before takes for crashed what the
   * restart of the machine has ended.
   */
  async untilTold(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#told.signal.aborted) return;
    await pause(ms, AbortSignal.any([signal, this.#told.signal]));
  }

  /** Docker cannot be heard any more. What has just ended did so with it: its return tells of that. */
  dockerLost(): void {
    this.#ends.clear();
  }

  /** @param awayFrom Unix milliseconds. */
  dockerReturned(awayFrom: number): void {
    // One that was not told everywhere began earlier.
    const since = Math.min(awayFrom, this.#return?.awayFrom ?? Number.POSITIVE_INFINITY);
    this.#return = { awayFrom: since, told: new Set(), untold: new Set() };
    this.#awake.abort();
  }

  containerEnded(death: ContainerDeath): void {
    setBounded(this.#ends, death.agentId, death, MAX_ENDS);
    this.#awake.abort();
  }

  /** Tells all there is and what comes, until the signal aborts. */
  async tell(signal: AbortSignal): Promise<void> {
    const { log } = this.#dependencies;
    signal.addEventListener('abort', () => this.#awake.abort(), { once: true });
    for (let failures = 0; !signal.aborted;) {
      this.#awake = new AbortController();
      let pauseMs = IDLE_MS;
      try {
        await this.#tellWhatThereIs();
        if (failures > 0) log.info({ failures }, 'what Docker told of agents was passed on');
        failures = 0;
      } catch (error) {
        if (failures === 0) {
          log.warn({ err: error }, 'what Docker tells of agents cannot be passed on, and is kept');
        }
        const longest = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LAST_PAUSE_MS);
        pauseMs = longest * (0.5 + Math.random() / 2);
      }
      if (!signal.aborted) await pause(pauseMs, this.#awake.signal);
    }
  }

  /** @throws the first failure, when all else is told. */
  async #tellWhatThereIs(): Promise<void> {
    const back = this.#return;
    const failures = back ? await this.#tellReturn(back) : [];
    if (back && back.untold.size === 0 && this.#return === back) {
      this.#return = undefined;
      this.#told.abort();
    }
    failures.push(
      ...(await this.#each([...this.#ends.values()], async (death) => {
        const { agentId } = death;
        // Its supervisor has to hear of the return first; what is newer is told next.
        const mayHear = !back?.untold.has(agentId) && (!this.#return || this.#return === back);
        if (!mayHear || this.#ends.get(agentId) !== death) return;
        await this.#tellEnd(death);
        if (this.#ends.get(agentId) === death) this.#ends.delete(agentId);
      })),
    );
    if (failures.length > 0) throw failures[0];
  }

  /** @returns why some could not be told. */
  async #tellReturn(back: Return): Promise<unknown[]> {
    const { database, docker, host, supervisors } = this.#dependencies;
    const { awayFrom, told, untold } = back;
    const failures: unknown[] = [];
    const running = await docker.containers.running();
    untold.clear();
    for await (const agents of agentsToRun(database, host, awayFrom)) {
      const ended = agents.filter(({ id }) => !running.has(id) && !told.has(id));
      const failed = await this.#each(ended, async (agent) => {
        if (this.#return !== back) return; // it was away once more, and is told of that next
        untold.add(agent.id);
        await supervisors.dockerReturned(supervisedOf(agent), { awayFrom });
        untold.delete(agent.id);
        told.add(agent.id);
      });
      failures.push(...failed);
    }
    return failures;
  }

  async #tellEnd({ agentId, userId, containerId, cause, exitCode, at }: ContainerDeath) {
    const { database, docker, host, log, supervisors } = this.#dependencies;
    // A Docker daemon that shuts down takes no more calls, and then ends its containers.
    if (!(await docker.available())) throw new UnavailableError('Docker does not answer');
    const agent = await findAgent(database.asUser(userId), agentId);
    if (agent?.host !== host || agent.desired !== 'running' || agent.startedAt === null) return;
    await supervisors.containerEnded(supervisedOf(agent), { containerId, cause, exitCode, at });
    log.info({ agentId, cause, exitCode }, 'a container has ended');
  }

  /** Does so for each of them, also when one fails. @returns why some did. */
  async #each<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<unknown[]> {
    const done = await Promise.allSettled(all.map((each) => this.#limit(work, each)));
    return done.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  }
}
