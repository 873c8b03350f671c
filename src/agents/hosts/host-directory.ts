import type { Logger } from 'pino';
import type { AgentRef } from '../../types/agent-ref.js';
import type { Page } from '../agents/agents.js';
import { requireDocker } from './require-docker.js';
import { isSilent } from './host-status.js';
import { hostLoads } from './hosts.js';
import type { LocalEngine } from './local-engine.js';
import { ContainerError } from '../../docker/containers/container-errors.js';
import type { DiskSpace } from '../../docker/containers/docker-disk.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import { versionOf } from '../../docker/containers/image-name.js';
import type { Database } from '../../platform/database/database.js';
import { DockerAwayError, ServiceError } from '../../lib/errors.js';
import { cachedFor } from '../../lib/cached-for.js';
import type { Allowed } from '../../platform/outbound/reachable.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { AgentFiles } from './agent-files.js';
import { byAgent, type HostAccess, type Instance, type Instances } from './host-access.js';
import { LocalHost } from './local-host.js';
import { HostUnreachableError, RemoteHost } from './remote-host.js';

/** Milliseconds for which the engine's state is cached: anybody may request it. */
const ENGINE_CACHED_MS = 1_000;

interface EngineState {
  readonly available: boolean;
  /** Null if unknown, as without a local engine. */
  readonly disk: DiskSpace | null;
}

interface HostDirectoryParts {
  readonly database: Database;
  /** Undefined for a process that uses no engine of its own. */
  readonly engine: LocalEngine | undefined;
  readonly secrets: SecretBox;
  /** CA certificate for the workers of hosts; Node's default CAs if omitted. */
  readonly ca: string | undefined;
  readonly log: Logger;
  readonly image: string;
  readonly helper: () => Promise<string>;
  readonly allow: Allowed;
}

/** A directory of Docker hosts, remote ones through their workers. */
export class HostDirectory {
  readonly #parts: HostDirectoryParts;
  readonly #local: LocalHost | undefined;
  /** Returns the state of the local engine, else by their workers' reports whether any host has one. */
  readonly engineState: () => Promise<EngineState>;

  /** Returns the image of new agents, and its version by its label on the local engine, or else by its name. */
  readonly runtimeOfNewAgents: () => Promise<{ readonly version: string; readonly image: string }>;

  constructor(parts: HostDirectoryParts) {
    this.#parts = parts;
    this.runtimeOfNewAgents = cachedFor(ENGINE_CACHED_MS, async () => {
      const { engine: local, image } = parts;
      const labelled = local && (await versionOnEngine(local.docker, image));
      return { version: labelled ?? versionOf(image), image };
    });
    const { database, engine } = parts;
    this.#local = engine && new LocalHost({ ...parts, ...engine });
    this.engineState = cachedFor(ENGINE_CACHED_MS, () =>
      engine
        ? stateOf(engine.docker)
        : // Health is reported even without a database.
          hasReportedEngine(database).then(
            (available) => ({ available, disk: null }),
            () => ({ available: false, disk: null }),
          ),
    );
  }

  /** Returns access to a host. @throws HostUnreachableError if the host's worker has published no address. */
  async accessTo(id: string): Promise<HostAccess> {
    const { database, engine } = this.#parts;
    if (this.#local && id === engine?.id) return this.#local;
    const [host] = await database
      .asPlatform()
      .query<{ url: string | null }>('SELECT url FROM hosts WHERE id = $id', { id });
    if (!host?.url) throw this.#withoutAddress(id);
    return this.#remote(id, host.url);
  }

  /** Returns access to a host whose Docker is available. @throws ServiceError 500 (spec 4.11) */
  async withDocker(id: string): Promise<HostAccess> {
    const { engine } = this.#parts;
    if (id === engine?.id) await requireDocker(engine.docker);
    return this.accessTo(id);
  }

  filesOf(agent: AgentRef): AgentFiles {
    return new AgentFiles(this, agent);
  }

  /**
   * Lists the containers on all hosts, each once, by agent id, and the hosts whose list is missing.
   * @throws ServiceError 500 if the local Docker does not answer, or without a local one no host has Docker.
   */
  async instances(
    options: Instances,
  ): Promise<Page<Instance> & { readonly unreachable: string[] }> {
    const { database, engine } = this.#parts;
    if (!(await this.#hasEngine())) throw new DockerAwayError();
    const others = await database.asPlatform().query<{ id: string; url: string | null }>(
      'SELECT id, url FROM hosts WHERE id <> $here ORDER BY id',
      // No host has an empty name.
      { here: engine?.id ?? '' },
    );
    const unreachable: string[] = [];
    const { limit } = options;
    // One extra entry shows whether there is a next page.
    const page = { ...options, limit: limit + 1 };
    const [own = [], ...lists] = await Promise.all([
      this.#local?.instances(page),
      ...others.map(async ({ id, url }) => {
        try {
          if (!url) throw this.#withoutAddress(id);
          return await this.#remote(id, url).instances(page);
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          unreachable.push(id);
          return [];
        }
      }),
    ]);
    // Two hosts can share one engine and list the same containers.
    const each = new Map([own, ...lists].flat().map((instance) => [instance.id, instance]));
    const found = [...each.values()].sort(byAgent);
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, next: last && [last.agentId], unreachable };
  }

  #hasEngine(): Promise<boolean> {
    const { database, engine } = this.#parts;
    return engine ? engine.docker.available() : hasReportedEngine(database);
  }

  #withoutAddress(host: string): HostUnreachableError {
    this.#parts.log.warn({ host }, "the host's worker has no address: set HOST_LISTEN for it");
    return new HostUnreachableError();
  }

  #remote(id: string, url: string): RemoteHost {
    const { ca, log, secrets } = this.#parts;
    return new RemoteHost({ id, url, ca, secrets, log });
  }
}

async function stateOf(docker: DockerHost): Promise<EngineState> {
  const available = await docker.available();
  return { available, disk: (available && (await docker.disk.space())) || null };
}

async function versionOnEngine(docker: DockerHost, image: string): Promise<string | undefined> {
  try {
    return await docker.images.versionOf(image);
  } catch (error) {
    if (error instanceof ContainerError) return undefined; // Docker does not answer
    throw error;
  }
}

async function hasReportedEngine(database: Database): Promise<boolean> {
  const hosts = await hostLoads(database.asPlatform());
  return hosts.some((host) => host.engineAvailable && !isSilent(host));
}
