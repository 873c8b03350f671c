import type { Logger } from 'pino';
import type { AgentRef } from '../agents/agent-ref.js';
import type { Page } from '../agents/agents.js';
import { requireDocker } from '../agents/require-docker.js';
import type { DiskSpace } from '../containers/docker-disk.js';
import type { DockerHost } from '../containers/docker-host.js';
import type { Database } from '../database/database.js';
import { ServiceError } from '../errors.js';
import { keptFor } from '../kept-for.js';
import type { Allowed } from '../outbound/reachable.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { AgentFiles } from './agent-files.js';
import { byAgent, type HostAccess, type Instance, type Instances } from './host-access.js';
import { LocalHost } from './local-host.js';
import { HostUnreachableError, RemoteHost } from './remote-host.js';

/** Milliseconds for which the engine's state is cached: anybody may request it. */
const ENGINE_CACHED_MS = 1_000;

interface HostDirectoryParts {
  readonly database: Database;
  readonly docker: DockerHost;
  readonly secrets: SecretBox;
  /** The Docker host that this process stands beside. */
  readonly here: string;
  readonly log: Logger;
  /** What agents here run that have no image of their own. */
  readonly image: string;
  /** The program by which workspaces are reached. */
  readonly helper: () => Promise<string>;
  /** What workspaces are pushed to although it is not public. */
  readonly allow: Allowed;
}

/** The way to each Docker host: to that beside this process directly, to others through their workers. */
export class HostDirectory {
  readonly #parts: HostDirectoryParts;
  readonly #local: LocalHost;
  /** Returns whether the engine beside this process answers, and the space on its disk. */
  readonly engineHere: () => Promise<{ available: boolean; disk: DiskSpace | null }>;

  constructor(parts: HostDirectoryParts) {
    this.#parts = parts;
    this.#local = new LocalHost({ ...parts, id: parts.here });
    const { docker } = parts;
    this.engineHere = keptFor(ENGINE_CACHED_MS, async () => {
      const available = await docker.available();
      return { available, disk: (available && (await docker.disk.space())) || null };
    });
  }

  /** @throws HostUnreachableError when its worker has not said where it listens. */
  async of(id: string): Promise<HostAccess> {
    const { database, here } = this.#parts;
    if (id === here) return this.#local;
    const [host] = await database
      .asPlatform()
      .query<{ url: string | null }>('SELECT url FROM hosts WHERE id = $id', { id });
    if (!host?.url) throw new HostUnreachableError();
    return this.#remote(id, host.url);
  }

  /** Of a host whose Docker can be asked. @throws ServiceError 500 (spec 4.11) */
  async withDocker(id: string): Promise<HostAccess> {
    if (id === this.#parts.here) await requireDocker(this.#parts.docker);
    return this.of(id);
  }

  /** Returns the files of an agent's workspace. */
  filesOf(agent: AgentRef): AgentFiles {
    return new AgentFiles(this, agent);
  }

  /**
   * The containers on all hosts, each once, by the agents' ids, and the hosts that did not tell theirs.
   *
   * @throws ServiceError 500 when the Docker beside this process does not answer.
   */
  async instances(
    options: Instances,
  ): Promise<Page<Instance> & { readonly unreachable: string[] }> {
    const { database, docker, here } = this.#parts;
    await requireDocker(docker);
    const others = await database
      .asPlatform()
      .query<{ id: string; url: string | null }>(
        'SELECT id, url FROM hosts WHERE id <> $here ORDER BY id',
        { here },
      );
    const unreachable: string[] = [];
    const { limit } = options;
    // One more than asked for tells whether there is a next page.
    const asked = { ...options, limit: limit + 1 };
    const [own, ...lists] = await Promise.all([
      this.#local.instances(asked),
      ...others.map(async ({ id, url }) => {
        try {
          if (!url) throw new HostUnreachableError();
          return await this.#remote(id, url).instances(asked);
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          unreachable.push(id);
          return [];
        }
      }),
    ]);
    // Two hosts may share one engine.
    const each = new Map([own, ...lists].flat().map((instance) => [instance.id, instance]));
    const found = [...each.values()].sort(byAgent);
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, next: last && [last.agentId], unreachable };
  }

  #remote(id: string, url: string): RemoteHost {
    const { log, secrets } = this.#parts;
    return new RemoteHost({ id, url, secrets, log });
  }
}
