import { requireDocker } from './require-docker.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { Statements } from '../../platform/database/database.js';
import { DockerAwayError, UnavailableError } from '../../lib/errors.js';
import { isSilent, statusOf } from './host-status.js';
import { hostLoad, hostLoads } from './hosts.js';

interface HostEnginesParts {
  readonly docker: Pick<DockerHost, 'available'>;
  /** The id of the Docker host next to this process. */
  readonly here: string;
}

/** A check of hosts' engines: probes the local engine directly and uses the worker's last report for others. */
export class DockerHosts {
  readonly #parts: HostEnginesParts;

  constructor(parts: HostEnginesParts) {
    this.#parts = parts;
  }

  /**
   * Checks that the host's engine can be used.
   *
   * @throws DockerAwayError if the host's engine does not answer.
   * @throws UnavailableError if the host's worker is silent.
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
   * Returns the local host's id if its engine does not answer, whatever its last report says, so that new
   * agents are placed on other hosts.
   *
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
