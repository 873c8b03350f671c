import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { freePort } from '../../dev/ports.js';
import { subnetOf } from '../../src/agents/agents/agent-subnet.js';
import {
  type AgentContainerSpec,
  containerName,
  GATEWAY_PORT,
  STATE_DIRECTORY,
} from '../../src/docker/containers/container-spec.js';
import { containerOptions } from '../../src/docker/containers/container-profile.js';
import { gatewayReady } from '../../src/docker/containers/gateway-probe.js';
import {
  CONFIG_FILE,
  openClawConfig,
  openClawEnvironment,
  openClawSecrets,
} from '../../src/docker/containers/openclaw-config.js';
import { stateArchive } from '../../src/docker/containers/state-archive.js';
import { freeSubnetPool } from './engine.js';

/** Milliseconds between two polls of a gateway that is not ready. */
const POLL_MS = 10;
const READY_TIMEOUT_MS = 180_000;

/** Milliseconds of each call and of all calls together. */
export interface BareRun {
  readonly steps: Readonly<Record<string, number>>;
  readonly total: number;
}

/** The baseline for the platform: bare dockerode brings up the same containers. */
export class BareAgents {
  /** Ports of the created containers by id. */
  readonly #made = new Map<string, number>();
  #places = 0;

  readonly #docker: Docker;
  readonly #image: string;
  readonly #subnetPool: string;

  private constructor(docker: Docker, image: string, subnetPool: string) {
    this.#docker = docker;
    this.#image = image;
    this.#subnetPool = subnetPool;
  }

  static async on(docker: Docker, image: string, otherPools: readonly string[]) {
    return new BareAgents(docker, image, await freeSubnetPool(docker, otherPools));
  }

  /** Creates a container like the platform's: profile, network, volume and configuration. */
  async likeOurs(): Promise<{ id: string; run: BareRun }> {
    const spec = await this.#nextSpec();
    const options = containerOptions(spec, { installation: 'bench', labels: {} });
    const archive = await stateArchive(spec);
    this.#made.set(spec.agentId, spec.port);
    const clock = new Clock();
    await Promise.all([
      this.#docker.createVolume({ Name: options.name }),
      this.#docker.createNetwork({
        Name: options.name,
        Driver: 'bridge',
        IPAM: { Driver: 'default', Config: [{ Subnet: spec.subnet }] },
      }),
    ]);
    clock.lap('network and volume');
    const container = await this.#docker.createContainer(options);
    clock.lap('create');
    await container.putArchive(archive, { path: STATE_DIRECTORY });
    clock.lap('configuration');
    await container.start();
    clock.lap('start');
    await untilReady(spec.port);
    clock.lap('ready');
    return { id: spec.agentId, run: clock.run };
  }

  /**
   * Creates a container on the engine's default bridge, without hardening, volume, network or
   * configuration.
   */
  async onDefaultBridge(): Promise<{ id: string; run: BareRun }> {
    const spec = await this.#nextSpec();
    const gateway = `${GATEWAY_PORT}/tcp`;
    this.#made.set(spec.agentId, spec.port);
    const clock = new Clock();
    const container = await this.#docker.createContainer({
      name: containerName(spec.agentId),
      Image: spec.image,
      Env: ['OPENCLAW_GATEWAY_TOKEN=bench'],
      ExposedPorts: { [gateway]: {} },
      HostConfig: {
        PortBindings: { [gateway]: [{ HostIp: '127.0.0.1', HostPort: String(spec.port) }] },
      },
    });
    clock.lap('create');
    await container.start();
    clock.lap('start');
    await untilReady(spec.port);
    clock.lap('ready');
    return { id: spec.agentId, run: clock.run };
  }

  /** Removes everything created under an id; missing parts are ignored. */
  async remove(id: string): Promise<void> {
    const name = containerName(id);
    await unlessMissing(this.#docker.getContainer(name).remove({ force: true, v: true }));
    await unlessMissing(this.#docker.getNetwork(name).remove());
    await unlessMissing(this.#docker.getVolume(name).remove());
    this.#made.delete(id);
  }

  /**
   * Kills all containers and starts them again.
   *
   * @param parallel concurrent starts.
   * @returns the milliseconds of the start.
   */
  async startAgain(parallel: number): Promise<number> {
    const containers = [...this.#made].map(([id, port]) => ({
      container: this.#docker.getContainer(containerName(id)),
      port,
    }));
    for (const { container } of containers) await container.kill();
    const waiting = containers.values();
    const started = performance.now();
    await Promise.all(
      Array.from({ length: parallel }, async () => {
        for (const { container, port } of waiting) {
          await container.start();
          await untilReady(port);
        }
      }),
    );
    return performance.now() - started;
  }

  async removeAll(): Promise<void> {
    await Promise.all([...this.#made.keys()].map((id) => this.remove(id)));
  }

  async #nextSpec(): Promise<AgentContainerSpec> {
    return {
      agentId: randomUUID(),
      userId: 'bench',
      image: this.#image,
      port: await freePort(),
      subnet: subnetOf(this.#places++, 0, this.#subnetPool),
      env: openClawEnvironment(),
      secrets: openClawSecrets({ gatewayToken: 'bench', aiToken: 'bench' }),
      files: {
        [CONFIG_FILE]: openClawConfig({ aiBaseUrl: 'http://127.0.0.1:9/v1', model: 'auto' }),
      },
    };
  }
}

class Clock {
  readonly #steps: Record<string, number> = {};
  readonly #started = performance.now();
  #last = this.#started;

  lap(step: string): void {
    const now = performance.now();
    this.#steps[step] = now - this.#last;
    this.#last = now;
  }

  get run(): BareRun {
    return { steps: this.#steps, total: this.#last - this.#started };
  }
}

async function untilReady(port: number): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if ((await gatewayReady(port, { timeoutMs: 2_000, token: 'bench' })).ready) return;
    await delay(POLL_MS);
  }
  throw new Error(`The gateway on port ${port} was not ready in ${READY_TIMEOUT_MS / 1_000} s.`);
}

async function unlessMissing(removal: Promise<unknown>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode !== 404) throw error;
  }
}
