import type { Logger } from 'pino';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { DockerEngine } from '../src/docker/containers/docker-engine.js';
import type { DockerDisk } from '../src/docker/containers/docker-disk.js';
import type { Database } from '../src/platform/database/database.js';
import type { EgressState } from '../src/docker/egress/host-egress.js';
import { capacityOf } from '../src/agents/hosts/host-capacity.js';
import { HostTakenError, reportHost, type HostReport } from '../src/agents/hosts/hosts.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';
import { untilAborted } from './run-together.js';

/** Between two reports; a host whose Docker has come back is to be used soon. */
const INTERVAL_MS = 10_000;
const DOCKER_AWAY_INTERVAL_MS = 2_000;

export interface HostReporting {
  readonly database: Database;
  readonly docker: Pick<DockerHost, 'available' | 'engine'> & {
    readonly disk: Pick<DockerDisk, 'space'>;
  };
  readonly host: Omit<
    HostReport,
    'engineAvailable' | 'engineId' | 'disk' | 'egress' | 'userNamespaces'
  >;
  /** What its agents' containers are to be run by; Docker's default when left out. */
  readonly runtime?: string | undefined;
  /** How the host keeps its agents' networks. */
  readonly egress?: (() => EgressState) | undefined;
  /** The engine whose name this one takes over. */
  readonly takeoverFrom?: string | undefined;
  readonly log: Logger;
}

/** Docker does not have what agents are to be run by, and by anything less they are not. */
export class RuntimeMissingError extends Error {
  constructor(runtime: string, has: readonly string[]) {
    super(
      `Docker has no runtime "${runtime}", by which AGENT_CONTAINER_RUNTIME has agents run, but ` +
        `${has.join(', ')}: install it and name it in Docker's daemon.json`,
    );
    this.name = 'RuntimeMissingError';
  }
}

/** The worker's word for its host, and with it the lease of the host's name. */
export class HostLease {
  readonly #reporting: HostReporting;
  readonly #waiting = new Set<() => void>();
  #engine: DockerEngine | undefined;
  #isHeld = false;
  #isDoubtful = false;
  #intervalMs = INTERVAL_MS;

  constructor(reporting: HostReporting) {
    this.#reporting = reporting;
  }

  /**
   * Writes the host down. A report that does not come through is made up for by the next.
   *
   * @throws HostTakenError when its name is another engine's.
   * @throws RuntimeMissingError when its agents cannot be run as they are to be.
   */
  async report(): Promise<void> {
    const { database, docker, host, log, takeoverFrom } = this.#reporting;
    this.#intervalMs = INTERVAL_MS;
    try {
      const engineAvailable = await docker.available();
      if (engineAvailable) this.#engine = (await docker.engine()) ?? this.#engine;
      else this.#intervalMs = DOCKER_AWAY_INTERVAL_MS;
      const disk = engineAvailable ? await docker.disk.space() : undefined;
      this.#requireRuntime();
      const capacity = host.capacity ?? this.#capacity();
      const engineId = this.#engine?.id;
      const userNamespaces = this.#engine && this.#engine.usersFrom !== undefined;
      const egress = this.#reporting.egress?.();
      const report = { ...host, capacity, engineAvailable, engineId, disk, egress, userNamespaces };
      this.#isHeld = await reportHost(database, report, takeoverFrom);
      this.#isDoubtful = !this.#isHeld;
    } catch (error) {
      this.#isDoubtful = error instanceof HostTakenError;
      if (error instanceof HostTakenError || error instanceof RuntimeMissingError) throw error;
      log.warn({ err: error }, 'the host could not be written down');
    }
    if (!this.#isHeld) return;
    for (const tell of this.#waiting) tell();
    this.#waiting.clear();
  }

  /** The database answers, and does not say that the name is this engine's. */
  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  /** Writes the host down again and again, until the signal aborts. @throws as `report` */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(jittered(this.#intervalMs), signal);
      if (!signal.aborted) await this.report();
    }
  }

  #capacity(): number | undefined {
    const { first, last } = this.#reporting.host.ports;
    return this.#engine && Math.min(last - first + 1, capacityOf(this.#engine.memoryBytes));
  }

  #requireRuntime(): void {
    const { runtime } = this.#reporting;
    if (runtime === undefined || !this.#engine || this.#engine.runtimes.includes(runtime)) return;
    throw new RuntimeMissingError(runtime, this.#engine.runtimes);
  }

  /** Resolves when the name is this engine's, or the signal has aborted. */
  async held(signal: AbortSignal): Promise<void> {
    if (this.#isHeld) return;
    const held = new Promise<void>((resolve) => this.#waiting.add(resolve));
    await Promise.race([held, untilAborted(signal)]);
  }
}
