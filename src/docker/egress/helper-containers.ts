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

const ANSWER_MS = 30_000;

const MAX_SAID = 2_000;

/** A program of this platform that runs in a container until its work is done. */
export interface HelperProgram<T> {
  /** Id of an image that contains Node. */
  readonly image: string;
  readonly script: string;
  readonly task?: unknown;
  /** `bridge`, `host`, or a network's name. */
  readonly network: string;
  /** The program sets rules on the engine's host; otherwise it may only open connections. */
  readonly administersNetwork?: boolean;
  /** Schema of the answer, which is the first matching line of output. */
  readonly answer: z.ZodType<T>;
}

/** The program ended without a valid answer. */
export class HelperFailedError extends ContainerError {
  override readonly name = 'HelperFailedError';
}

/** Temporary containers of the installation, separate from its agents'. */
export class HelperContainers {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  get labels(): Record<string, string> {
    const { installation, labels } = this.#client;
    return { ...labels, [LABEL.installation]: installation, [LABEL.helps]: 'egress' };
  }

  /**
   * Calls `work` with a program's answer while it still runs, then removes its container.
   * @throws HelperFailedError with the program's output if it has no valid answer.
   */
  async run<T, R>(program: HelperProgram<T>, work: (answer: T) => Promise<R>): Promise<R> {
    return withThrowAway(this.#client, this.#options(program), async ({ id }) =>
      work(await this.#answerOf(id, program)),
    );
  }

  /** Removes leftovers of workers that died: containers first, then their networks. */
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
      throw new DockerUnavailableError(`A helper container did not answer within ${ANSWER_MS} ms`);
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
    throw new HelperFailedError(
      said.slice(0, MAX_SAID).trim() || 'The helper container ended without output',
    );
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
          // Root of a user namespace may not change the host's network.
          UsernsMode: 'host',
        }),
      },
    });
  }
}
