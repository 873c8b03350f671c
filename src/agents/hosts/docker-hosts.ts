import { requireDocker } from './require-docker.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { Statements } from '../../platform/database/database.js';
import { DockerAwayError, UnavailableError } from '../../lib/errors.js';
import { isSilent, statusOf } from './host-status.js';
import { hostLoad, hostLoads } from './hosts.js';

interface HostEnginesParts {
  readonly docker: Pick<DockerHost, 'available'>;
  readonly here: string;
}

/** A check of hosts' engines: the local one directly, others by their worker's last report. */
export class DockerHosts {
  readonly #parts: HostEnginesParts;

  constructor(parts: HostEnginesParts) {
    this.#parts = parts;
  }

  /**
   * Checks the host's engine. @throws DockerAwayError, or UnavailableError if the host's worker is silent.
   */
  async require(db: Statements, host: string): Promise<void> {
    const { docker, here } = this.#parts;
    if (host === here) return requireDocker(docker);
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
   * @throws DockerAwayError if no other host is ready.
   */
  async unavailableLocalHost(db: Statements): Promise<string | undefined> {
    const { docker, here } = this.#parts;
    if (await docker.available()) return undefined;
    const others = (await hostLoads(db)).filter(({ id }) => id !== here);
    if (!others.some((host) => statusOf(host) === 'ready')) throw new DockerAwayError();
    return here;
  }
}
