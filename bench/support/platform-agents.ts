import { setTimeout as delay } from 'node:timers/promises';
import { containerName } from '../../src/docker/containers/container-spec.js';
import { configuredDocker } from '../../src/docker/containers/docker-host.js';
import type { DockerHost } from '../../src/docker/containers/docker-host.js';
import { Client } from './client.js';
import type { BenchEngine } from './engine.js';
import type { BenchPlatform } from './platform.js';

/**
 * Milliseconds between polls; rare, so that polling does not slow down the platform. Times come from the
 * answers.
 */
const POLL_MS = 100;
const LIST_POLL_MS = 100;
const TIMEOUT_MS = 300_000;

interface AgentSeen {
  readonly id: string;
  readonly status: string;
  readonly statusReason?: string | null;
  readonly startedAt?: string | null;
}

/** An agent that the platform has brought up, with times of this machine's clock. */
export interface Provisioned {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly sentAt: number;
  /** Milliseconds from sending the request. */
  readonly answered: number;
  readonly running: number;
}

/** Creates agents through the backend API, as a client program would. */
export class PlatformAgents {
  readonly #client: Client;
  readonly #docker: DockerHost;
  readonly #made = new Set<string>();

  readonly #engine: BenchEngine;

  constructor(platform: BenchPlatform, engine: BenchEngine) {
    this.#engine = engine;

    this.#client = new Client(platform.backendUrl, {
      authorization: `Bearer ${platform.internalApiKey}`,
    });
    this.#docker = configuredDocker({
      containers: {
        dockerHost: engine.host,
        runtime: undefined,
        diskFloor: 0,
        volumeLimit: Infinity,
      },
      secrets: { installation: platform.installation },
    });
  }

  /** Creates an agent and waits until the API reports it as running. */
  async provision(name: string): Promise<Provisioned> {
    const request = await this.#request(name);
    const deadline = performance.now() + TIMEOUT_MS;
    for (;;) {
      const agent = await this.#client.json<AgentSeen>('GET', `/api/agents/${request.id}`);
      if (agent.status === 'active') {
        return { ...request, running: Date.parse(agent.startedAt ?? '') - request.sentAt };
      }
      if (agent.status === 'error') throw new Error(`Agent ${name}: ${agent.statusReason}`);
      if (performance.now() > deadline) throw new Error(`Agent ${name} was not running in time`);
      await delay(POLL_MS);
    }
  }

  /**
   * Creates agents concurrently; returns the number of running agents and the milliseconds until the last
   * one ran.
   */
  async burst(count: number): Promise<{ running: number; took: number; ids: string[] }> {
    const started = performance.now();
    const requested = await Promise.all(
      Array.from({ length: count }, (_, index) => this.#request(`burst-${started}-${index}`)),
    );
    const ids = requested.map(({ id }) => id);
    for (;;) {
      const agents = await this.#client.json<AgentSeen[]>('GET', '/api/agents?limit=200');
      const settled = agents.filter(({ id, status }) => ids.includes(id) && status !== 'pending');
      const took = performance.now() - started;
      if (settled.length === count || took > TIMEOUT_MS) {
        return { running: settled.filter(({ status }) => status === 'active').length, took, ids };
      }
      await delay(LIST_POLL_MS);
    }
  }

  /** Requests an operation and returns the milliseconds from its request to its end, by the database's clock. */
  async operate(id: string, method: string, path: string, body?: unknown): Promise<number> {
    const { operationId, status, error } = await this.#client.json<{
      operationId: string;
      status: string;
      error: string | null;
    }>(method, `/api/agents/${id}/${path}?wait=60`, body);
    if (status !== 'succeeded') throw new Error(`${method} ${path}: ${status} ${error}`);
    const { operations } = await this.#client.json<{
      operations: { id: string; requestedAt: string; finishedAt: string }[];
    }>('GET', `/api/agents/${id}/operations`);
    const operation = operations.find((each) => each.id === operationId);
    if (!operation) throw new Error(`Operation ${operationId} is not listed`);
    return Date.parse(operation.finishedAt) - Date.parse(operation.requestedAt);
  }

  /** Removes agents and waits until the engine has no trace of them. */
  async remove(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#client.json('DELETE', `/api/agents/${id}`)));
    const deadline = performance.now() + TIMEOUT_MS;
    for (const id of ids) {
      while (!(await this.#isGone(id))) {
        if (performance.now() > deadline) throw new Error(`Agent ${id} was not removed`);
        await delay(LIST_POLL_MS);
      }
      this.#made.delete(id);
    }
  }

  /** Removes the agents' remains from the engine after the platform has ended. */
  async removeRest(): Promise<void> {
    this.#client.close();
    for (const id of this.#made) {
      await this.#docker.containers.remove(id);
      await this.#docker.networks.remove(id);
      await this.#docker.volumes.remove(id, await this.#docker.volumes.list(id));
    }
  }

  async #request(name: string) {
    const sentAt = Date.now();
    const { id } = await this.#client.json<{ id: string }>('POST', '/api/agents', { name });
    this.#made.add(id);
    return { id, sentAt, answered: Date.now() - sentAt };
  }

  /** Reports whether the agent's volume, which is removed last, no longer exists. */
  async #isGone(id: string): Promise<boolean> {
    const filters = JSON.stringify({ name: [containerName(id)] });
    const { Volumes: volumes } = await this.#engine.docker.listVolumes({ filters });
    return volumes.length === 0;
  }
}
