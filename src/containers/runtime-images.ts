import type Docker from 'dockerode';
import { isObject } from '../json.js';
import { VERSION_LABEL } from './container-spec.js';
import { DockerRefusedError, ImageUnavailableError } from './container-errors.js';
import { asContainerError, type DockerClient } from './docker-client.js';

/** A registry that says nothing for so long is not going to. */
const SILENCE_MS = 60_000;

export interface RuntimeImage {
  readonly id: string;
  /** Version of the runtime, where the image's labels say it. */
  readonly version: string | undefined;
}

export interface PullOptions {
  /** Called for every step of a pull: a sign of life, and something to show. */
  readonly onProgress?: ((line: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long the registry may take to answer at all, in milliseconds. */
  readonly answerMs?: number | undefined;
}

/** Images of the agents' runtime. */
export class RuntimeImages {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /**
   * The image as it is in Docker, or else pulled.
   *
   * @throws ImageUnavailableError
   */
  async ensure(image: string, options: PullOptions = {}): Promise<RuntimeImage> {
    const local = await this.#find(image);
    if (local) return local;
    await pullImage(this.#client.docker, image, options);
    const pulled = await this.#find(image);
    if (!pulled) throw new ImageUnavailableError(image);
    return pulled;
  }

  async #find(image: string): Promise<RuntimeImage | undefined> {
    const found = await this.#client.callUnless([404], (docker) =>
      docker.getImage(image).inspect(),
    );
    return found && { id: found.Id, version: found.Config.Labels?.[VERSION_LABEL] };
  }
}

/**
 * Pulls an image. Called again after a pull that was not heard of, it finds what is there by then.
 *
 * @throws ImageUnavailableError when the registry does not have it or does not answer.
 */
export async function pullImage(docker: Docker, image: string, options: PullOptions = {}) {
  // Without a tag Docker would pull all of them.
  const reference = /[:@][^/]*$/.test(image) ? image : `${image}:latest`;
  const silence = new AbortController();
  const signal = options.signal
    ? AbortSignal.any([options.signal, silence.signal])
    : silence.signal;
  let timer = setTimeout(() => silence.abort(), options.answerMs ?? SILENCE_MS);
  try {
    const stream: NodeJS.ReadableStream = await docker.pull(reference, { abortSignal: signal });
    let rest = '';
    for await (const chunk of stream) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) reportStep(line, options.onProgress);
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    const cause = asContainerError(error);
    // A Docker daemon that answers with a status, or is silent, waits for the registry in vain.
    if (
      cause instanceof DockerRefusedError ||
      cause instanceof PullFailure ||
      silence.signal.aborted
    ) {
      throw new ImageUnavailableError(image, { cause });
    }
    throw cause;
  } finally {
    clearTimeout(timer);
  }
}

/** A pull that began well and failed later is told inside a stream with status 200. */
class PullFailure extends Error {}

function reportStep(line: string, onProgress: PullOptions['onProgress']) {
  if (line.trim() === '') return;
  const step: unknown = JSON.parse(line);
  if (!isObject(step)) return;
  if ('error' in step) throw new PullFailure(String(step.error));
  const parts = ['id', 'status', 'progress'].map((key) => step[key]);
  onProgress?.(parts.filter((part) => typeof part === 'string').join(' '));
}
