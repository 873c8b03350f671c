import type Docker from 'dockerode';
import { isObject } from '../json.js';
import { VERSION_LABEL } from './container-spec.js';
import { DockerRefusedError, ImageUnavailableError } from './container-errors.js';
import { asContainerError, type DockerClient } from './docker-client.js';

/** A registry that says nothing for so long is not going to. */
const SILENCE_MS = 60_000;

export interface RuntimeImage {
  /** Version of the runtime, where the image's labels say it. */
  readonly version: string | undefined;
}

export interface PullOptions {
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
    const local = await this.find(image);
    if (local) return local;
    await pullImage(this.#client.docker, image, options);
    const pulled = await this.find(image);
    if (!pulled) throw new ImageUnavailableError(image);
    return pulled;
  }

  /** The image as it is in Docker, if it is. */
  async find(image: string): Promise<RuntimeImage | undefined> {
    const found = await this.#client.callUnless([404], (docker) =>
      docker.getImage(image).inspect(),
    );
    return found && { version: found.Config.Labels?.[VERSION_LABEL] };
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
      lines.forEach(refuseFailure);
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    const cause = asContainerError(error);
    // A Docker daemon that answers with a status, or is silent, waits for the registry in vain.
    const inVain = cause instanceof DockerRefusedError || cause instanceof PullFailure;
    if (!inVain && !silence.signal.aborted) throw cause;
    throw new ImageUnavailableError(image, { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** A pull that began well and failed later is told inside a stream with status 200. */
class PullFailure extends Error {}

function refuseFailure(line: string): void {
  const step: unknown = line.trim() === '' ? undefined : JSON.parse(line);
  if (isObject(step) && 'error' in step) throw new PullFailure(String(step.error));
}
