import type { Logger } from 'pino';
import type { DockerHost } from '../src/containers/docker-host.js';
import type { EngineDisk } from '../src/containers/engine-disk.js';
import type { Database } from '../src/database/database.js';
import { HostTakenError, reportHost, type HostReport } from '../src/hosts/hosts.js';
import { pause } from '../src/pause.js';
import { untilAborted } from './run-together.js';

/** Between two reports; a host whose Docker has come back is to be used soon. */
const INTERVAL_MS = 10_000;
const DOCKER_AWAY_INTERVAL_MS = 2_000;

export interface HostReporting {
  readonly database: Database;
  readonly docker: Pick<DockerHost, 'available' | 'engineId'> & {
    readonly disk: Pick<EngineDisk, 'space'>;
  };
  readonly host: Omit<HostReport, 'engineAvailable' | 'engineId' | 'disk'>;
  /** The engine whose name this one takes over. */
  readonly takeoverFrom?: string | undefined;
  readonly log: Logger;
}

/** The worker's word for its host, and with it the lease of the host's name. */
export class HostLease {
  readonly #reporting: HostReporting;
  readonly #waiting = new Set<() => void>();
  #engineId: string | undefined;
  #isHeld = false;
  #intervalMs = INTERVAL_MS;

  constructor(reporting: HostReporting) {
    this.#reporting = reporting;
  }

  /**
   * Writes the host down. A report that does not come through is made up for by the next.
   *
   * @throws HostTakenError when its name is another engine's.
   */
  async report(): Promise<void> {
    const { database, docker, host, log, takeoverFrom } = this.#reporting;
    this.#intervalMs = INTERVAL_MS;
    try {
      const engineAvailable = await docker.available();
      if (engineAvailable) this.#engineId = (await docker.engineId()) ?? this.#engineId;
      else this.#intervalMs = DOCKER_AWAY_INTERVAL_MS;
      const disk = engineAvailable ? await docker.disk.space() : undefined;
      const report = { ...host, engineAvailable, engineId: this.#engineId, disk };
      this.#isHeld = await reportHost(database, report, takeoverFrom);
    } catch (error) {
      if (error instanceof HostTakenError) throw error;
      log.warn({ err: error }, 'the host could not be written down');
    }
    if (!this.#isHeld) return;
    for (const tell of this.#waiting) tell();
    this.#waiting.clear();
  }

  /** Writes the host down again and again, until the signal aborts. @throws HostTakenError */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#intervalMs, signal);
      if (!signal.aborted) await this.report();
    }
  }

  /** Resolves when the name is this engine's, or the signal has aborted. */
  async held(signal: AbortSignal): Promise<void> {
    if (this.#isHeld) return;
    const held = new Promise<void>((resolve) => this.#waiting.add(resolve));
    await Promise.race([held, untilAborted(signal)]);
  }
}
