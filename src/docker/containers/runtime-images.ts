import type Docker from 'dockerode';
import { isObject } from '../../lib/json.js';
import { VERSION_LABEL } from './container-spec.js';
import { DockerRefusedError, ImageUnavailableError } from './container-errors.js';
import { isLocalImage, listedName, pulledMark } from './image-name.js';
import { asContainerError, type DockerClient } from './docker-client.js';

/** Milliseconds of a registry's silence until a pull fails. */
const SILENCE_MS = 60_000;

/** Milliseconds until an image counts as unused; an operation that needs it has started by then. */
const UNWANTED_MS = 24 * 60 * 60_000;

const MAX_REMOVED = 20;

export interface RuntimeImage {
  /** Version of the runtime, if the image's labels name it. */
  readonly version: string | undefined;
}

export interface PullOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the registry's first answer. */
  readonly answerMs?: number | undefined;
}

/** Docker's image details with a field missing in dockerode's types. */
interface Inspected extends Docker.ImageInspectInfo {
  readonly Metadata?: { readonly LastTagTime?: string };
}

/** Returns Unix milliseconds of the last use; 0 if Docker has none. */
const lastWanted = ({ Metadata: known }: Inspected): number =>
  Math.max(0, Date.parse(known?.LastTagTime ?? '') || 0);

export class RuntimeImages {
  readonly #client: DockerClient;

  constructor(client: DockerClient) {
    this.#client = client;
  }

  /**
   * Returns the image in Docker, or pulls it unless its name has no registry. @throws ImageUnavailableError
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

  /** Finds the image in Docker and marks it as just used. */
  async find(image: string): Promise<RuntimeImage | undefined> {
    const found = await this.#inspect(image);
    if (found && this.#pulledNames(found, [image]).length > 0) await this.#mark(image);
    return found && { version: found.Config.Labels?.[VERSION_LABEL] };
  }

  /** Returns the version in an image's labels; undefined without one, or if Docker does not have the image. */
  async versionOf(image: string): Promise<string | undefined> {
    return (await this.#inspect(image))?.Config.Labels?.[VERSION_LABEL];
  }

  /**
   * Removes images pulled by this installation, unless a container uses them, they were used within a day, or
   * `wanted` names them. Names given by others stay. Returns the removed names, twenty at most.
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
    const containers = await this.#client.listContainers({ all: true });
    const inUse = new Set(containers.map(({ ImageID: id }) => id));
    const kept = new Set([...wanted].map(listedName));
    const removed: string[] = [];
    for (const { Id: id } of pulled) {
      if (removed.length >= MAX_REMOVED) break;
      // An image listed by name has only this name.
      const image = await this.#inspect(id);
      if (!image || inUse.has(id)) continue;
      const names = this.#pulledNames(image);
      if (names.some((name) => kept.has(name))) continue;
      if (now - lastWanted(image) < unwantedMs) continue;
      for (const name of names) if (await this.#remove(name)) removed.push(name);
      // Removed last, so that an interrupted removal is found again.
      const marks = image.RepoTags.filter((name) => name.startsWith(`${repo}:`));
      for (const mark of marks) await this.#remove(mark);
    }
    return removed;
  }

  /** Returns the names under which this installation has pulled the image. */
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
    // The image may have been removed since the pull.
    await this.#client.callUnless([404], (docker, bound) =>
      docker.getImage(image).tag({ ...mark, ...bound }),
    );
  }

  #inspect(image: string): Promise<Inspected | undefined> {
    return this.#client.callUnless([404], (docker) => docker.getImage(image).inspect());
  }

  /** Removes an image name; false if a container now uses the image, or the name no longer exists. */
  async #remove(name: string): Promise<boolean> {
    const done = await this.#client.callUnless([404, 409], async (docker, bound) => {
      await docker.getImage(name).remove(bound);
      return true;
    });
    return done === true;
  }
}

/**
 * Pulls an image. A repeated call after a lost response finds the progress so far.
 * @throws ImageUnavailableError if the registry does not have it or does not answer.
 */
export async function pullImage(docker: Docker, image: string, options: PullOptions = {}) {
  if (isLocalImage(image)) throw new ImageUnavailableError(image);
  // Without a tag Docker would pull all tags.
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
    // A status, or silence, from Docker means that the registry failed.
    const inVain = cause instanceof DockerRefusedError || cause instanceof PullFailure;
    if (!inVain && !silence.signal.aborted) throw cause;
    throw new ImageUnavailableError(image, { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** A pull that fails later is reported inside a stream with status 200. */
class PullFailure extends Error {
  override readonly name = 'PullFailure';
}

function refuseFailure(line: string): void {
  const step: unknown = line.trim() === '' ? undefined : JSON.parse(line);
  if (isObject(step) && 'error' in step) throw new PullFailure(String(step.error));
}
