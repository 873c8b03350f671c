import type Docker from 'dockerode';
import { ForeignContainerError, SeveralContainersError } from './container-errors.js';
import { isOurs } from './container-profile.js';
import { AGENT_ROLE, containerName, LABEL, spareNames } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { removeContainer } from './throw-away.js';

/**
 * Reports whether labels and name are those of a container in which an agent runs. A container of an earlier
 * release has no role, and is recognized by its port or its name. The container that an operation retains has
 * another name.
 */
export function isOwnContainer(
  labels: Readonly<Record<string, string>>,
  name: string | undefined,
): boolean {
  const agentId = labels[LABEL.agent];
  if (agentId === undefined || name === spareNames(agentId).previous) return false;
  const role = labels[LABEL.role];
  if (role !== undefined) return role === AGENT_ROLE;
  return labels[LABEL.port] !== undefined || name === containerName(agentId);
}

/**
 * The containers in which agents run, by their labels: a name can be changed by hand. An agent has one, and
 * any other with its labels is a stray, such as a copy made by hand.
 */
export class OwnContainers {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /**
   * Finds the agent's container; among several without its name, the one that runs or was made last.
   * @throws ForeignContainerError if there is none, and another owner's container has its name.
   */
  async find(agentId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    const named = await this.#inspect(containerName(agentId));
    if (named && this.#isOwn(named, agentId)) return named;
    const found = ownAmong(await this.#listed(agentId));
    if (found) return this.#inspect(found.Id);
    if (named) throw new ForeignContainerError('container', containerName(agentId));
    return undefined;
  }

  /** Lists all containers with the agent's labels, its own and strays. @throws ForeignContainerError as `find` */
  async all(agentId: string): Promise<Docker.ContainerInfo[]> {
    const found = await this.#listed(agentId);
    if (found.length === 0) await this.find(agentId);
    return found;
  }

  /** Lists the own container of every agent. */
  async ofAllAgents(): Promise<Docker.ContainerInfo[]> {
    return [...(await this.#byAgent()).values()].flatMap((found) => ownAmong(found) ?? []);
  }

  /**
   * Finds the agent's container for a change, restores its name, and removes strays.
   * @throws SeveralContainersError if none of several has the name; ForeignContainerError as `find`
   */
  async claim(agentId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    const name = containerName(agentId);
    const all = await this.all(agentId);
    const own = all.length > 1 ? all.find((each) => nameOf(each) === name) : all[0];
    if (!own && all.length > 0) throw new SeveralContainersError(name, all.map(nameOf).sort());
    if (!own) return undefined;
    for (const { Id: id } of all) if (id !== own.Id) await removeContainer(this.#client, id);
    if (nameOf(own) !== name) {
      // The name may be another container's by now; only operators can use it.
      await this.#client.callUnless([404, 409], (docker, bound) =>
        docker.getContainer(own.Id).rename({ name, ...bound }),
      );
    }
    return this.#inspect(own.Id);
  }

  /** Removes the strays beside agents' own containers, and returns their names. */
  async removeStrays(): Promise<string[]> {
    const names: string[] = [];
    for (const [agentId, found] of await this.#byAgent()) {
      const own = found.find((each) => nameOf(each) === containerName(agentId));
      for (const each of own ? found : []) {
        if (each === own) continue;
        await removeContainer(this.#client, each.Id);
        names.push(nameOf(each));
      }
    }
    return names;
  }

  async #byAgent(): Promise<Map<string, Docker.ContainerInfo[]>> {
    const byAgent = new Map<string, Docker.ContainerInfo[]>();
    for (const each of await this.#listed()) {
      const agentId = each.Labels[LABEL.agent] ?? '';
      byAgent.set(agentId, [...(byAgent.get(agentId) ?? []), each]);
    }
    return byAgent;
  }

  async #listed(agentId?: string): Promise<Docker.ContainerInfo[]> {
    const label = [
      `${LABEL.installation}=${this.#client.installation}`,
      agentId === undefined ? LABEL.agent : `${LABEL.agent}=${agentId}`,
    ];
    const found = await this.#client.listContainers({ all: true, filters: { label } });
    return found.filter((each) => isOwnContainer(each.Labels, nameOf(each)));
  }

  #isOwn({ Config: config, Name: name }: Docker.ContainerInspectInfo, agentId: string): boolean {
    return (
      isOurs(config.Labels, agentId, this.#client) && isOwnContainer(config.Labels, name.slice(1))
    );
  }

  #inspect(id: string): Promise<Docker.ContainerInspectInfo | undefined> {
    return this.#client.callUnless([404], (docker, bound) =>
      docker.getContainer(id).inspect(bound),
    );
  }
}

function ownAmong(found: readonly Docker.ContainerInfo[]): Docker.ContainerInfo | undefined {
  const rank = (each: Docker.ContainerInfo) =>
    nameOf(each) === containerName(each.Labels[LABEL.agent] ?? '') ? 2 : Number(isLive(each));
  return found.toSorted((a, b) => rank(b) - rank(a) || b.Created - a.Created)[0];
}

/** Reports whether Docker would have to stop the container. */
export const isLive = ({ State: state }: Docker.ContainerInfo): boolean =>
  state === 'running' || state === 'paused' || state === 'restarting';

/** Returns a container's name: Docker also lists names of links, with a second slash. */
function nameOf({ Names: names, Id: id }: Docker.ContainerInfo): string {
  return names.find((name) => name.lastIndexOf('/') === 0)?.slice(1) ?? id;
}
