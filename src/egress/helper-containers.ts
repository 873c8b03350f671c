import type Docker from 'dockerode';
import type { z } from 'zod';
import { ContainerError, DockerUnavailableError } from '../containers/container-errors.js';
import { LABEL } from '../containers/container-spec.js';
import type { DockerClient } from '../containers/docker-client.js';
import { tryParseJson } from '../json.js';

/** Milliseconds until a program has told what it was asked for. */
const ANSWER_MS = 30_000;

const MIB = 1024 * 1024;
const MAX_SAID = 2_000;

/** A program of ours that runs in a container for as long as its work takes. */
export interface HelperProgram<T> {
  /** Id of an image that has Node. */
  readonly image: string;
  readonly script: string;
  readonly task?: unknown;
  /** `bridge`, `host`, or a network's name. */
  readonly network: string;
  /** Whether it sets rules of the engine's host. Without that it has no right but to connect. */
  readonly administersNetwork?: boolean;
  /** What it answers, in its first line. */
  readonly answer: z.ZodType<T>;
}

/** The program did not answer as it should. */
export class HelperFailedError extends ContainerError {}

/** Throw-away containers of the installation, apart from its agents'. */
export class HelperContainers {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /** The labels of all that helps, networks too. */
  get labels(): Record<string, string> {
    const { installation, labels } = this.#client;
    return { ...labels, [LABEL.installation]: installation, [LABEL.helps]: 'egress' };
  }

  /**
   * Runs a program, and `work` with its answer while it may still serve; it is gone afterwards.
   *
   * @throws HelperFailedError with what it said instead.
   */
  async run<T, R>(program: HelperProgram<T>, work: (answer: T) => Promise<R>): Promise<R> {
    const { id } = await this.#client.call((docker, bound) =>
      docker.createContainer({ ...this.#options(program), ...bound }),
    );
    const container = this.#client.docker.getContainer(id);
    try {
      await this.#client.call((_, bound) => container.start(bound));
      return await work(await this.#answerOf(id, program));
    } finally {
      await this.#client.callUnless([404, 409], (_, bound) =>
        container.remove({ force: true, v: true, ...bound }),
      );
    }
  }

  /** What workers that died over it have left; containers go before their networks. */
  async removeLeftovers(): Promise<void> {
    const label = Object.entries(this.labels).map((pair) => pair.join('='));
    const filters = { label };
    const containers = await this.#client.call((docker, bound) =>
      docker.listContainers({ all: true, filters, ...bound }),
    );
    for (const { Id: id } of containers) {
      await this.#client.callUnless([404, 409], (docker, bound) =>
        docker.getContainer(id).remove({ force: true, v: true, ...bound }),
      );
    }
    const networks = await this.#client.call((docker, bound) =>
      docker.listNetworks({ filters: JSON.stringify(filters), ...bound }),
    );
    for (const { Id: id } of networks) {
      await this.#client.callUnless([404], (docker, bound) => docker.getNetwork(id).remove(bound));
    }
  }

  async #answerOf<T>(id: string, { answer }: HelperProgram<T>): Promise<T> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), ANSWER_MS);
    let said = '';
    try {
      const stream = await this.#client.openStream(
        `/containers/${id}/logs`,
        { stdout: true, stderr: true, follow: true },
        { signal: abort.signal },
      );
      stream.setEncoding('utf8');
      for await (const chunk of stream) {
        said += String(chunk);
        for (const line of said.split(/\r?\n/)) {
          const parsed = answer.safeParse(tryParseJson(line));
          if (parsed.success) return parsed.data;
        }
        if (said.length > MAX_SAID) break;
      }
    } catch (error) {
      if (!abort.signal.aborted) throw error;
      throw new DockerUnavailableError(`A helper said nothing in ${ANSWER_MS} ms`);
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
    throw new HelperFailedError(said.slice(0, MAX_SAID).trim() || 'It said nothing');
  }

  #options<T>(program: HelperProgram<T>): Docker.ContainerCreateOptions {
    const { administersNetwork = false, image, network, script, task = {} } = program;
    return {
      Image: image,
      User: administersNetwork ? '0:0' : '1000:1000',
      WorkingDir: '/',
      Entrypoint: ['node'],
      Cmd: ['-e', script, JSON.stringify(task)],
      // Else Docker sends the lines in frames.
      Tty: true,
      Labels: this.labels,
      HostConfig: {
        NetworkMode: network,
        ExtraHosts: ['host.docker.internal:host-gateway'],
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        ...(administersNetwork && {
          CapAdd: ['NET_ADMIN'],
          // Who is root of a namespace of users only has no say about the host's network.
          UsernsMode: 'host',
        }),
        SecurityOpt: ['no-new-privileges'],
        Privileged: false,
        PidsLimit: 64,
        Memory: 256 * MIB,
        MemorySwap: 256 * MIB,
        LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
        RestartPolicy: { Name: 'no' },
      },
    };
  }
}
