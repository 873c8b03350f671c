import { isSame } from '../../docker/containers/agent-volumes.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow, AgentVolumeRow } from '../../platform/database/models.js';
import { agentsNeverRun, agentsNotKnownStopped, agentsToRun } from '../watchdog/host-agents.js';

/** Ids that one question to the database names. */
const CHUNK = 200;

/** Removed agents of which something is left, in one pass: the rest waits for the next. */
const MAX_LEFT_OVER = 500;

/** What is in Docker and belongs to no agent that there is. */
export interface Orphans {
  /** Agents whose removal is complete, and of which something is left all the same. */
  readonly removed: readonly string[];
  /** Agents that the database has never heard of. */
  readonly unknown: readonly string[];
}

/** Compares what runs on a host with what should. */
export class Reconciliation {
  readonly #database: Database;
  readonly #docker: DockerHost;

  constructor(database: Database, docker: DockerHost) {
    this.#database = database;
    this.#docker = docker;
  }

  /**
   * The agents of the host that should run and do not, those that should not and run or are not known
   * to be stopped while no operation of theirs is open, and those that have never run and of which a
   * provisioning has left something that it could not undo, a part at a time.
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

  /** What is left in Docker of agents that are not there. Helpers that have ended go at once. */
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

  /**
   * Takes away what is left of an agent whose removal is complete; asks the database once more
   * first. What is not ours by its labels stays.
   *
   * @returns whether it did.
   */
  async removeLeftOver(agentId: string): Promise<boolean> {
    const { removed } = await this.#stateOf([agentId]);
    if (removed.length === 0) return false;
    await this.#docker.containers.remove(agentId);
    await this.#docker.networks.remove(agentId);
    await this.#docker.volumes.remove(agentId, await this.#volumesOf([agentId]));
    return true;
  }

  /**
   * Volumes that no operation of this database has made: of a newer state of it most likely, which
   * was restored from a backup. They are nobody's here, and stay.
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

  /** Those of them of which no operation is open. */
  async *#idle(agents: readonly AgentRow[]): AsyncGenerator<AgentRow[]> {
    const busy = await this.#withOpenOperation(agents.map(({ id }) => id));
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
    const busy = await this.#withOpenOperation(removed);
    return {
      removed: removed.filter((id) => !busy.has(id)),
      unknown: ids.filter((id) => !known.has(id)),
    };
  }

  async #withOpenOperation(agentIds: readonly string[]): Promise<ReadonlySet<string>> {
    const open = await this.#database.asPlatform().transaction((db) =>
      db.Operation.findAll({
        where: { agentId: [...agentIds], finishedAt: null },
        attributes: ['agentId'],
      }),
    );
    return new Set(open.map(({ agentId }) => agentId));
  }
}

function* chunks(ids: readonly string[]): Generator<string[]> {
  for (let start = 0; start < ids.length; start += CHUNK) yield ids.slice(start, start + CHUNK);
}
