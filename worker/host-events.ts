import type { Logger } from 'pino';
import type { Supervisors } from '../temporal/supervisors.js';
import { absenceAt, type DockerAbsence } from '../src/agents/watchdog/docker-absence.js';
import { findAgent } from '../src/agents/agents/agents.js';
import { agentsToRun } from '../src/agents/watchdog/host-agents.js';
import { supervisedOf } from '../src/agents/operations/supervisors.js';
import { setBounded } from '../src/lib/bounded-map.js';
import type { ContainerDeath } from '../src/docker/containers/death-cause.js';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { Database } from '../src/platform/database/database.js';
import { UnavailableError } from '../src/lib/errors.js';
import { FairLimiter } from '../src/lib/fair-limiter.js';
import { pause } from '../src/lib/pause.js';

const AT_ONCE = 20;

/** Milliseconds between two attempts while PostgreSQL or Temporal is unavailable; half of each is random. */
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 5_000;

/** Milliseconds of the pause without pending events; a new event ends it. */
const IDLE_MS = 24 * 60 * 60_000;

/** Maximum number of ends of containers not yet delivered, one for each agent: more than a host has agents. */
const MAX_ENDS = 10_000;

export interface HostEventsDependencies {
  readonly database: Database;
  readonly supervisors: Pick<Supervisors, 'containerEnded' | 'dockerReturned'>;
  readonly docker: Pick<DockerHost, 'available' | 'containers'>;
  readonly log: Logger;
  readonly host: string;
}

interface Return {
  /** Unix milliseconds since when ended containers ended because Docker was unavailable. */
  readonly awayFrom: number;
  /** Ids of the agents whose supervisors were notified. */
  readonly notified: Set<string>;
  /** Ids of the agents whose supervisors could not be notified yet. */
  readonly unnotified: Set<string>;
}

/**
 * Events for the supervisors of a Docker host's agents, kept until delivered, however long PostgreSQL or
 * Temporal is unavailable. The return of Docker is delivered first: containers that ended before did not
 * crash.
 */
export class HostEvents {
  #return: Return | undefined;
  /** The last absence of Docker, in Unix milliseconds. */
  #absence: DockerAbsence | undefined;
  /** The last end of each agent's container. */
  readonly #ends = new Map<string, ContainerDeath>();
  /** Aborted once a return of Docker was delivered to all supervisors. */
  readonly #notified = new AbortController();
  /** Aborted on a new event, and at the end. */
  #awake = new AbortController();

  readonly #dependencies: HostEventsDependencies;
  readonly #limiter = new FairLimiter({ atOnce: AT_ONCE, perOwner: AT_ONCE });

  constructor(dependencies: HostEventsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Waits, at most `ms`, until the supervisors were notified of the first connection to Docker: a supervisor
   * that probes earlier would count containers ended by a restart of the machine as crashed.
   */
  async untilNotified(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#notified.signal.aborted) return;
    await pause(ms, AbortSignal.any([signal, this.#notified.signal]));
  }

  /** Drops pending ends: those containers ended with Docker, and its return reports that. */
  dockerLost(): void {
    this.#ends.clear();
  }

  /** Records that Docker is available again after an outage since `awayFrom`, in Unix milliseconds. */
  dockerReturned(awayFrom: number): void {
    // If an earlier return was not delivered to all supervisors, its start counts.
    this.#absence = { from: awayFrom, until: Date.now() };
    const since = Math.min(awayFrom, this.#return?.awayFrom ?? Number.POSITIVE_INFINITY);
    this.#return = { awayFrom: since, notified: new Set(), unnotified: new Set() };
    this.#awake.abort();
  }

  /** Keeps a container's end; one within Docker's absence is no crash, and its return reports it. */
  containerEnded(death: ContainerDeath): void {
    if (this.#absence && absenceAt([this.#absence], death.at)) return;
    setBounded(this.#ends, death.agentId, death, MAX_ENDS);
    this.#awake.abort();
  }

  async notify(signal: AbortSignal): Promise<void> {
    const { log } = this.#dependencies;
    signal.addEventListener('abort', () => this.#awake.abort(), { once: true });
    for (let failures = 0; !signal.aborted;) {
      this.#awake = new AbortController();
      let pauseMs = IDLE_MS;
      try {
        await this.#notifyPending();
        if (failures > 0) log.info({ failures }, "Docker's events for agents were delivered");
        failures = 0;
      } catch (error) {
        if (failures === 0) {
          log.warn(
            { err: error },
            "Docker's events for agents could not be delivered, and are kept",
          );
        }
        const longest = Math.min(FIRST_PAUSE_MS * 2 ** failures++, LAST_PAUSE_MS);
        pauseMs = longest * (0.5 + Math.random() / 2);
      }
      if (!signal.aborted) await pause(pauseMs, this.#awake.signal);
    }
  }

  /** Delivers pending events. @throws the first failure, after all were tried. */
  async #notifyPending(): Promise<void> {
    const back = this.#return;
    const failures = back ? await this.#notifyReturn(back) : [];
    if (back && back.unnotified.size === 0 && this.#return === back) {
      this.#return = undefined;
      this.#notified.abort();
    }
    failures.push(
      ...(await this.#each([...this.#ends.values()], async (death) => {
        const { agentId } = death;
        // Its supervisor must be notified of the return first; newer events are delivered next.
        const mayNotify =
          !back?.unnotified.has(agentId) && (!this.#return || this.#return === back);
        if (!mayNotify || this.#ends.get(agentId) !== death) return;
        await this.#notifyEnd(death);
        if (this.#ends.get(agentId) === death) this.#ends.delete(agentId);
      })),
    );
    if (failures.length > 0) throw failures[0];
  }

  /** Returns the failures to notify supervisors of a return. */
  async #notifyReturn(back: Return): Promise<unknown[]> {
    const { database, docker, host, supervisors } = this.#dependencies;
    const { awayFrom, notified, unnotified } = back;
    const failures: unknown[] = [];
    const running = await docker.containers.running();
    unnotified.clear();
    for await (const agents of agentsToRun(database, host, awayFrom)) {
      const ended = agents.filter(({ id }) => !running.has(id) && !notified.has(id));
      const failed = await this.#each(ended, async (agent) => {
        if (this.#return !== back) return; // Docker was unavailable once more; that return is delivered next.
        unnotified.add(agent.id);
        await supervisors.dockerReturned(supervisedOf(agent), { awayFrom });
        unnotified.delete(agent.id);
        notified.add(agent.id);
      });
      failures.push(...failed);
    }
    return failures;
  }

  async #notifyEnd({ agentId, userId, containerId, cause, exitCode, at }: ContainerDeath) {
    const { database, docker, host, log, supervisors } = this.#dependencies;
    // A Docker daemon in its shutdown refuses calls, and then ends its containers.
    if (!(await docker.available())) throw new UnavailableError('Docker does not answer');
    const agent = await findAgent(database.asUser(userId), agentId);
    if (agent?.host !== host || agent.desired !== 'running' || agent.startedAt === null) return;
    await supervisors.containerEnded(supervisedOf(agent), { containerId, cause, exitCode, at });
    log.info({ agentId, cause, exitCode }, 'a container has ended');
  }

  /** Runs the work for all elements, even if some fail, and returns the failures. */
  async #each<T extends { readonly userId: string }>(
    all: readonly T[],
    work: (each: T) => Promise<void>,
  ): Promise<unknown[]> {
    const done = await Promise.allSettled(
      all.map((each) => this.#limiter.run({ owner: each.userId }, () => work(each))),
    );
    return done.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  }
}
