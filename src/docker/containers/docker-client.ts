import type { Readable } from 'node:stream';
import Docker from 'dockerode';
import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import type { DiskLimits } from './disk-limits.js';

export interface DockerOptions {
  /** As in `DOCKER_HOST`; Docker's usual socket when left out. */
  readonly dockerHost?: string | undefined;
  /** Tells apart installations on one Docker daemon; what belongs to another one is refused. */
  readonly installation?: string | undefined;
  /** More labels for all that is made. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** What runs agents' containers; Docker's own default when left out. */
  readonly runtime?: string | undefined;
  /** What memories may take of the disk; without bound when left out. */
  readonly disk?: DiskLimits | undefined;
  /** Bound for a usual call, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Is asked before an agent's container is started, and throws where that must not be. */
  readonly mayStart?: (() => Promise<void>) | undefined;
}

/** What dockerode takes among a call's options, and ends the call by. */
interface Bound {
  readonly abortSignal: AbortSignal;
}

/** Connects to Docker at an address like `DOCKER_HOST`, or at its usual socket. */
export function connectDocker(dockerHost?: string): Docker {
  if (dockerHost === undefined) return new Docker();
  const address = new URL(dockerHost);
  if (address.protocol === 'unix:') return new Docker({ socketPath: address.pathname });
  if (address.protocol === 'npipe:') {
    return new Docker({ socketPath: dockerHost.slice('npipe://'.length) });
  }
  const protocol = address.protocol === 'https:' ? 'https' : 'http';
  const port = address.port === '' ? (protocol === 'https' ? 2376 : 2375) : Number(address.port);
  return new Docker({ protocol, host: address.hostname, port });
}

/**
 * Docker as one installation calls it: every call has a bound. A call that is given up may still
 * take effect: whoever makes it looks at what is there before it makes the next.
 */
export class DockerClient {
  readonly docker: Docker;
  readonly installation: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether the containers' ports are ports of this machine. */
  readonly isLocal: boolean;
  readonly timeoutMs: number;
  readonly mayStart: () => Promise<void>;

  constructor(options: DockerOptions) {
    this.docker = connectDocker(options.dockerHost);
    this.installation = options.installation ?? 'default';
    this.labels = options.labels ?? {};
    this.isLocal = !/^(tcp|https?):/.test(options.dockerHost ?? '');
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.mayStart = options.mayStart ?? (() => Promise.resolve());
  }

  /**
   * @param work makes one call of dockerode's, with its bound among the options.
   * @throws DockerUnavailableError when Docker is not there or too slow.
   * @throws DockerRefusedError with Docker's status otherwise.
   */
  async call<T>(
    work: (docker: Docker, bound: Bound) => Promise<T>,
    timeoutMs = this.timeoutMs,
  ): Promise<T> {
    const timeout = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    // The race beside the signal, because dockerode does not watch the signal in all of its phases.
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(
          new DockerUnavailableError(`The container engine did not answer in ${timeoutMs} ms`),
        );
        timeout.abort();
      }, timeoutMs);
    });
    try {
      const bound = { abortSignal: timeout.signal };
      return await Promise.race([work(endingWith(this.docker, bound), bound), tooLate]);
    } catch (error) {
      throw asContainerError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The same, where `undefined` stands for one of the statuses that mean "nothing to do". */
  async callUnless<T>(
    statuses: readonly number[],
    work: (docker: Docker, bound: Bound) => Promise<T>,
    timeoutMs?: number,
  ): Promise<T | undefined> {
    try {
      return await this.call(work, timeoutMs);
    } catch (error) {
      if (error instanceof DockerRefusedError && statuses.includes(error.statusCode)) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Opens an answer that goes on, such as a log. Not through dockerode's own methods, which read a
   * log that is not followed into memory, and take times as numbers that hold no nanoseconds.
   *
   * @param signal ends the stream.
   */
  openStream(
    path: string,
    query: Readonly<Record<string, unknown>>,
    { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number } = {},
  ): Promise<Readable> {
    const request = {
      path: `${path}?`,
      method: 'GET',
      isStream: true,
      statusCodes: { 200: true },
      options: query,
    };
    return this.call(
      ({ modem }, bound) =>
        new Promise<Readable>((resolve, reject) => {
          modem.dial(
            { ...request, ...bound, ...(signal && { abortSignal: signal }) },
            (error, stream) => {
              if (error) reject(error);
              // With `isStream` and without `hijack` it is always the response.
              else resolve(stream as Readable);
            },
          );
        }),
      timeoutMs,
    );
  }
}

/**
 * The same Docker, of which each question ends with the bound, also one for which dockerode's types take no
 * options: what is given up leaves no connection to an engine that hangs.
 */
function endingWith(docker: Docker, { abortSignal }: Bound): Docker {
  const { modem } = docker;
  const dial: typeof modem.dial = (options, callback) =>
    modem.dial({ ...options, abortSignal: options.abortSignal ?? abortSignal }, callback);
  // Each is what it was, but for that.
  const bounded = Object.create(modem, { dial: { value: dial } }) as typeof modem;
  return Object.create(docker, { modem: { value: bounded } }) as Docker;
}

/** Sorts what dockerode throws into "answered with a status" and "not reached". */
export function asContainerError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if ('statusCode' in error && typeof error.statusCode === 'number') {
    return new DockerRefusedError(error.statusCode, error.message.trim(), error);
  }
  // System errors of the connection (ECONNREFUSED, ENOENT, ECONNRESET ...) carry a text code.
  if ('code' in error && typeof error.code === 'string') {
    return new DockerUnavailableError(`The container engine cannot be reached (${error.code})`, {
      cause: error,
    });
  }
  return error;
}
