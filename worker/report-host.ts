import type { Logger } from 'pino';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { DockerEngine } from '../src/docker/containers/docker-engine.js';
import type { DockerDisk } from '../src/docker/containers/docker-disk.js';
import type { Database } from '../src/platform/database/database.js';
import type { EgressState } from '../src/docker/egress/host-egress.js';
import { capacityOf } from '../src/agents/hosts/host-capacity.js';
import { HostNameTakenError, reportHost, type HostReport } from '../src/agents/hosts/hosts.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';
import { untilAborted } from './run-together.js';

/** Milliseconds between two reports; shorter without Docker, so that a recovered host is soon used again. */
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
  /** Container runtime for agents; Docker's own default if undefined. */
  readonly runtime?: string | undefined;
  readonly egress?: (() => EgressState) | undefined;
  /** Id of the engine from which this engine takes over the host's name. */
  readonly takeoverFrom?: string | undefined;
  readonly log: Logger;
}

/** Agents must not run with a weaker runtime than the configured one. */
export class RuntimeMissingError extends Error {
  override readonly name = 'RuntimeMissingError';

  constructor(runtime: string, has: readonly string[]) {
    super(
      `Docker lacks the runtime "${runtime}" that AGENT_CONTAINER_RUNTIME requires; it has only ` +
        `${has.join(', ')}: install the runtime and name it in Docker's daemon.json`,
    );
  }
}

/** The worker's reports on its host, which also hold the lease of the host's name. */
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
   * Stores a report on the host. After a failed report the next one catches up.
   * @throws HostNameTakenError if another engine has the host's name, RuntimeMissingError
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
      this.#isDoubtful = error instanceof HostNameTakenError;
      if (error instanceof HostNameTakenError || error instanceof RuntimeMissingError) throw error;
      log.warn({ err: error }, "the host's report could not be stored");
    }
    if (!this.#isHeld) return;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Reports whether this engine has the host's name, by the last stored report. */
  get isHeld(): boolean {
    return this.#isHeld && !this.#isDoubtful;
  }

  /** Reports whether the database answered without confirming that this engine has the host's name. */
  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  /** Stores reports periodically until the signal aborts. @throws as `report` */
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

  /** Resolves when this engine has the host's name, or the signal has aborted. */
  async held(signal: AbortSignal): Promise<void> {
    if (this.#isHeld) return;
    const held = new Promise<void>((resolve) => this.#waiting.add(resolve));
    await Promise.race([held, untilAborted(signal)]);
  }
}
