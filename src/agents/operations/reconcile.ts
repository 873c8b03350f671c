import { isSame } from '../../docker/containers/agent-volumes.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow, AgentVolumeRow } from '../../platform/database/models.js';
import {
  agentsNeverRun,
  agentsNotKnownStopped,
  agentsToRun,
  busyAgents,
} from '../watchdog/host-agents.js';

const CHUNK = 200;

/** Maximum number of leftovers in one pass; the rest waits for the next. */
const MAX_LEFT_OVER = 500;

export interface Orphans {
  readonly removed: readonly string[];
  readonly unknown: readonly string[];
}

export class Reconciliation {
  readonly #database: Database;
  readonly #docker: DockerHost;

  constructor(database: Database, docker: DockerHost) {
    this.#database = database;
    this.#docker = docker;
  }

  /**
   * Yields the agents that differ from their desired state and have no open operation, or never ran and left
   * remains of a failed provisioning.
   */
  async *drifted(host: string): AsyncGenerator<AgentRow[]> {
    const running = await this.#docker.containers.running();
    for await (const agents of agentsToRun(this.#database, host)) {
      yield agents.filter(({ id }) => !running.has(id));
    }
    for (const ids of chunks([...running])) {
      const stopped = await this.#database.asPlatform().transaction((db) =>
        db.Agent.findAll({
          where: { id: ids, host, desired: 'stopped' },
        }),
      );
      yield* this.#idle(stopped);
    }
    for await (const agents of agentsNotKnownStopped(this.#database, host)) {
      yield* this.#idle(agents.filter(({ id }) => !running.has(id)));
    }
    const owners = await this.#docker.ownersOfContainers();
    for await (const agents of agentsNeverRun(this.#database, host)) {
      yield* this.#idle(agents.filter(({ id, port }) => port !== null || owners.has(id)));
    }
  }

  /** Removes manually created copies of agents' containers, and returns their names. */
  removeStrays(): Promise<string[]> {
    return this.#docker.containers.removeStrays();
  }

  /** Returns the owners of resources without an existing agent. Removes exited helper containers at once. */
  async orphans(): Promise<Orphans> {
    await this.#docker.workspaces.removeDead();
    const removed: string[] = [];
    const unknown: string[] = [];
    for (const ids of chunks([...(await this.#docker.owners())])) {
      const state = await this.#stateOf(ids);
      removed.push(...state.removed);
      unknown.push(...state.unknown);
    }
    return { removed: removed.slice(0, MAX_LEFT_OVER), unknown };
  }

  /** Removes a removed agent's labelled leftovers; true if the database confirms the removal. */
  async removeLeftOver(agentId: string): Promise<boolean> {
    const { removed } = await this.#stateOf([agentId]);
    if (removed.length === 0) return false;
    await this.#docker.containers.remove(agentId);
    await this.#docker.networks.remove(agentId);
    await this.#docker.volumes.remove(agentId, await this.#volumesOf([agentId]));
    return true;
  }

  /**
   * Returns volumes unknown to this database, probably older than a restored backup. They are never removed.
   */
  async unknownVolumes(): Promise<string[]> {
    const unknown: string[] = [];
    const listed = await this.#docker.volumes.list();
    for (const ids of chunks([...new Set(listed.map(({ agentId }) => agentId))])) {
      const known = await this.#volumesOf(ids);
      const here = listed.filter(({ agentId }) => ids.includes(agentId));
      unknown.push(
        ...here
          .filter((volume) => !known.some((each) => isSame(each, volume)))
          .map(({ name }) => name),
      );
    }
    return unknown;
  }

  async *#idle(agents: readonly AgentRow[]): AsyncGenerator<AgentRow[]> {
    const busy = await busyAgents(
      this.#database,
      agents.map(({ id }) => id),
    );
    yield agents.filter(({ id }) => !busy.has(id));
  }

  #volumesOf(agentIds: readonly string[]): Promise<AgentVolumeRow[]> {
    return this.#database
      .asPlatform()
      .transaction((db) => db.AgentVolume.findAll({ where: { agentId: [...agentIds] } }));
  }

  async #stateOf(ids: readonly string[]): Promise<Orphans> {
    const agents = await this.#database.asPlatform().transaction((db) =>
      db.Agent.findAll({
        where: { id: [...ids] },
        attributes: ['id', 'deletedAt'],
      }),
    );
    const known = new Set(agents.map(({ id }) => id));
    const removed = agents.filter(({ deletedAt }) => deletedAt !== null).map(({ id }) => id);
    const busy = await busyAgents(this.#database, removed);
    return {
      removed: removed.filter((id) => !busy.has(id)),
      unknown: ids.filter((id) => !known.has(id)),
    };
  }
}

function* chunks(ids: readonly string[]): Generator<string[]> {
  for (let start = 0; start < ids.length; start += CHUNK) yield ids.slice(start, start + CHUNK);
}
