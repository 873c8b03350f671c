import { requireDocker } from './require-docker.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { Statements } from '../../platform/database/database.js';
import { DockerAwayError, UnavailableError } from '../../lib/errors.js';
import { isSilent, statusOf, type HostLoad } from './host-status.js';
import { hostLoad, hostLoads } from './hosts.js';
import type { LocalEngine } from './local-engine.js';

/** A check of hosts' engines: the local one directly, others by their worker's last report. */
export class DockerHosts {
  readonly #local: LocalEngine<Pick<DockerHost, 'available'>> | undefined;

  /** @param local undefined for a process that uses no engine of its own. */
  constructor(local: LocalEngine<Pick<DockerHost, 'available'>> | undefined) {
    this.#local = local;
  }

  /**
   * Checks the host's engine. @throws DockerAwayError, or UnavailableError if the host's worker is silent.
   */
  async require(db: Statements, host: string): Promise<void> {
    if (host === this.#local?.id) return requireDocker(this.#local.docker);
    const load = await hostLoad(db, host);
    if (!load || isSilent(load)) {
      throw new UnavailableError(
        `The worker of the agent's host ${host} is not reporting: try again later`,
      );
    }
    if (!load.engineAvailable) throw new DockerAwayError();
  }

  /**
   * Returns the local host's id if its engine does not answer, so that agents are placed elsewhere.
   * @throws DockerAwayError if no other host is ready, and the local engine or a reported one does not answer.
   */
  async unavailableLocalHost(db: Statements): Promise<string | undefined> {
    const local = this.#local;
    if (local && (await local.docker.available())) return undefined;
    const others = (await hostLoads(db)).filter(({ id }) => id !== local?.id);
    const isAnyReady = others.some((host) => statusOf(host) === 'ready');
    if (!isAnyReady && (local || others.some(isEngineAway))) throw new DockerAwayError();
    return local?.id;
  }
}

const isEngineAway = (host: HostLoad): boolean => statusOf(host) === 'engine_unavailable';
