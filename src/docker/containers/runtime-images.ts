import type Docker from 'dockerode';
import { isObject } from '../../lib/json.js';
import { VERSION_LABEL } from './container-spec.js';
import { DockerRefusedError, ImageUnavailableError } from './container-errors.js';
import { isLocalImage, listedName, pulledMark } from './image-name.js';
import { asContainerError, type DockerClient } from './docker-client.js';

/** A registry that says nothing for so long is not going to. */
const SILENCE_MS = 60_000;

/** An operation that wants an image has begun to use it by then. */
const UNWANTED_MS = 24 * 60 * 60_000;

/** Names that one pass removes. */
const MAX_REMOVED = 20;

export interface RuntimeImage {
  /** Version of the runtime, where the image's labels say it. */
  readonly version: string | undefined;
}

export interface PullOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long the registry may take to answer at all, in milliseconds. */
  readonly answerMs?: number | undefined;
}

/** With what dockerode's types leave out. */
interface Inspected extends Docker.ImageInspectInfo {
  readonly Metadata?: { readonly LastTagTime?: string };
}

/** In Unix milliseconds; 0 where Docker does not know. */
const lastWanted = ({ Metadata: known }: Inspected): number =>
  Math.max(0, Date.parse(known?.LastTagTime ?? '') || 0);

/** Images of the agents' runtime. */
export class RuntimeImages {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /**
   * The image as it is in Docker, or else pulled, unless its name says of no registry that it has it.
   *
   * @throws ImageUnavailableError
   */
  async ensure(image: string, options: PullOptions = {}): Promise<RuntimeImage> {
    const local = await this.find(image);
    if (local) return local;
    await pullImage(this.#client.docker, image, options);
    await this.#mark(image);
    const pulled = await this.find(image);
    if (!pulled) throw new ImageUnavailableError(image);
    return pulled;
  }

  /** The image as it is in Docker, if it is. Somebody wants it: it counts as pulled just now. */
  async find(image: string): Promise<RuntimeImage | undefined> {
    const found = await this.#inspect(image);
    if (found && this.#pulledNames(found, [image]).length > 0) await this.#mark(image);
    return found && { version: found.Config.Labels?.[VERSION_LABEL] };
  }

  /**
   * Removes images that this installation has pulled, as far as no container is made of them, nobody has
   * wanted them for a day, and they are not among `wanted`. What others have named stays under those names.
   *
   * @returns the names that were removed, twenty at most.
   */
  async removeUnused(
    wanted: ReadonlySet<string>,
    { unwantedMs = UNWANTED_MS, now = Date.now() } = {},
  ): Promise<string[]> {
    const { repo } = pulledMark(this.#client.installation);
    const filters = JSON.stringify({ reference: [repo] });
    const pulled = await this.#client.call((docker, bound) =>
      docker.listImages({ filters, ...bound }),
    );
    const containers = await this.#client.call((docker, bound) =>
      docker.listContainers({ all: true, ...bound }),
    );
    const inUse = new Set(containers.map(({ ImageID: id }) => id));
    const kept = new Set([...wanted].map(listedName));
    const removed: string[] = [];
    for (const { Id: id } of pulled) {
      if (removed.length >= MAX_REMOVED) break;
      // What is listed by a name has this name alone.
      const image = await this.#inspect(id);
      if (!image || inUse.has(id)) continue;
      const names = this.#pulledNames(image);
      if (names.some((name) => kept.has(name))) continue;
      if (now - lastWanted(image) < unwantedMs) continue;
      for (const name of names) if (await this.#remove(name)) removed.push(name);
      // Last, so that what was broken off before is found again.
      const marks = image.RepoTags.filter((name) => name.startsWith(`${repo}:`));
      for (const mark of marks) await this.#remove(mark);
    }
    return removed;
  }

  /** Of the names of an image, those under which this installation has pulled it. */
  #pulledNames(
    { RepoTags: tags, RepoDigests: digests }: Inspected,
    names: readonly string[] = [...tags, ...digests],
  ): string[] {
    const isMarked = (name: string) => {
      const { repo, tag } = pulledMark(this.#client.installation, name);
      return tags.includes(`${repo}:${tag}`);
    };
    return names.filter(isMarked);
  }

  async #mark(image: string): Promise<void> {
    const mark = pulledMark(this.#client.installation, image);
    // Between the pull and this, somebody else may have removed it.
    await this.#client.callUnless([404], (docker, bound) =>
      docker.getImage(image).tag({ ...mark, ...bound }),
    );
  }

  #inspect(image: string): Promise<Inspected | undefined> {
    return this.#client.callUnless([404], (docker) => docker.getImage(image).inspect());
  }

  /** @returns false when a container has been made of it meanwhile, or it is gone. */
  async #remove(name: string): Promise<boolean> {
    const done = await this.#client.callUnless([404, 409], async (docker, bound) => {
      await docker.getImage(name).remove(bound);
      return true;
    });
    return done === true;
  }
}

/**
 * Pulls an image. Called again after a pull that was not heard of, it finds what is there by then.
 *
 * @throws ImageUnavailableError when the registry does not have it or does not answer.
 */
export async function pullImage(docker: Docker, image: string, options: PullOptions = {}) {
  if (isLocalImage(image)) throw new ImageUnavailableError(image);
  // Without a tag Docker would pull all of them.
  const reference = /[:@]/.test(image.slice(image.lastIndexOf('/') + 1))
    ? image
    : `${image}:latest`;
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
