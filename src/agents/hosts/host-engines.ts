import { requireDocker } from './require-docker.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { Statements } from '../../platform/database/database.js';
import { DockerAwayError, UnavailableError } from '../../lib/errors.js';
import { isSilent, statusOf } from './host-status.js';
import { hostLoad, hostLoads } from './hosts.js';

interface HostEnginesParts {
  readonly docker: Pick<DockerHost, 'available'>;
  /** The Docker host that this process stands beside. */
  readonly here: string;
}

/** Which hosts' engines can be worked with: that beside this process by asking it, others by their word. */
export class HostEngines {
  readonly #parts: HostEnginesParts;

  constructor(parts: HostEnginesParts) {
    this.#parts = parts;
  }

  /**
   * @throws DockerAwayError when the host's engine does not answer.
   * @throws UnavailableError when its worker has not been heard of.
   */
  async require(db: Statements, host: string): Promise<void> {
    const { docker, here } = this.#parts;
    if (host === here) return requireDocker(docker);
    const load = await hostLoad(db, host);
    if (!load || isSilent(load)) {
      throw new UnavailableError(`The agent's host ${host} has not been heard of: try again later`);
    }
    if (!load.engineAvailable) throw new DockerAwayError();
  }

  /**
   * The host beside this process when its engine does not answer, whatever was last heard of it: new
   * agents go to others.
   *
   * @throws DockerAwayError when there are none.
   */
  async awayHere(db: Statements): Promise<string | undefined> {
    const { docker, here } = this.#parts;
    if (await docker.available()) return undefined;
    const others = (await hostLoads(db)).filter(({ id }) => id !== here);
    if (!others.some((host) => statusOf(host) === 'ready')) throw new DockerAwayError();
    return here;
  }
}
