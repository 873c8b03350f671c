import type Docker from 'dockerode';
import type * as z from 'zod';
import { ContainerError, DockerUnavailableError } from '../containers/container-errors.js';
import { LABEL } from '../containers/container-spec.js';
import type { DockerClient } from '../containers/docker-client.js';
import {
  LEFTOVER_MS,
  removeLeftovers,
  throwAwayOptions,
  withThrowAway,
} from '../containers/throw-away.js';
import { tryParseJson } from '../../lib/json.js';

/** Milliseconds until a program has told what it was asked for. */
const ANSWER_MS = 30_000;

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
    return withThrowAway(this.#client, this.#options(program), async ({ id }) =>
      work(await this.#answerOf(id, program)),
    );
  }

  /** What workers that died over it have left; containers go before their networks. */
  async removeLeftovers(olderThanMs = LEFTOVER_MS): Promise<void> {
    const label = Object.entries(this.labels).map((pair) => pair.join('='));
    await removeLeftovers(this.#client, { label }, olderThanMs);
    const networks = await this.#client.call((docker, bound) =>
      docker.listNetworks({ filters: JSON.stringify({ label }), ...bound }),
    );
    for (const { Id: id, Created: created } of networks) {
      if (Date.now() - Date.parse(created) < olderThanMs) continue;
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
    return throwAwayOptions({
      image,
      script,
      task,
      user: administersNetwork ? '0:0' : '1000:1000',
      labels: this.labels,
      memoryMiB: 256,
      needs: {
        NetworkMode: network,
        ExtraHosts: ['host.docker.internal:host-gateway'],
        ...(administersNetwork && {
          CapAdd: ['NET_ADMIN'],
          // Who is root of a namespace of users only has no say about the host's network.
          UsernsMode: 'host',
        }),
      },
    });
  }
}
