import type { Readable } from 'node:stream';
import Docker from 'dockerode';
import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import type { DiskLimits } from './disk-limits.js';

export interface DockerOptions {
  /** Docker's address, as in `DOCKER_HOST`; the default socket if undefined. */
  readonly dockerHost?: string | undefined;
  /** Name of the installation on a shared Docker daemon; things of another installation are refused. */
  readonly installation?: string | undefined;
  /** Additional labels for all created things. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Container runtime of agents; Docker's default if undefined. */
  readonly runtime?: string | undefined;
  /** Disk limits of memories; unlimited if undefined. */
  readonly disk?: DiskLimits | undefined;
  /** Milliseconds for an ordinary call. */
  readonly timeoutMs?: number | undefined;
  /** A check before an agent's container starts; throws to prevent the start. */
  readonly mayStart?: (() => Promise<void>) | undefined;
}

interface Bound {
  readonly abortSignal: AbortSignal;
}

/** Connects to Docker at an address like `DOCKER_HOST`, or at the default socket. */
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
 * Docker as used by one installation, with a timeout on every call. A call that timed out may still take
 * effect, so callers check the state before the next call.
 */
export class DockerClient {
  readonly docker: Docker;
  readonly installation: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The containers' ports are ports of this machine. */
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
   * Makes a call with a timeout; `work` makes a single dockerode call and passes the bound in its options.
   * @throws DockerUnavailableError if Docker is unreachable or too slow, DockerRefusedError otherwise.
   */
  async call<T>(
    work: (docker: Docker, bound: Bound) => Promise<T>,
    timeoutMs = this.timeoutMs,
  ): Promise<T> {
    const timeout = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    // A race in addition to the signal, because dockerode ignores the signal in some phases.
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

  /** Makes a call, but returns `undefined` for the statuses that mean "nothing to do". */
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

  /** Lists containers; all filters must match. */
  listContainers(options: Docker.ContainerListOptions): Promise<Docker.ContainerInfo[]> {
    return this.call((docker, bound) => docker.listContainers({ ...options, ...bound }));
  }

  /**
   * Opens a continuous answer. Bypasses dockerode's own methods, which read a log that is not followed into
   * memory, and whose numeric times lose nanoseconds.
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
              // With `isStream` and without `hijack` this is always the response.
              else resolve(stream as Readable);
            },
          );
        }),
      timeoutMs,
    );
  }
}

/**
 * Returns a Docker whose requests the bound ends, also where dockerode's types take no options, so that no
 * connection to a hung engine stays open.
 */
function endingWith(docker: Docker, { abortSignal }: Bound): Docker {
  const { modem } = docker;
  const dial: typeof modem.dial = (options, callback) =>
    modem.dial({ ...options, abortSignal: options.abortSignal ?? abortSignal }, callback);
  // Both objects inherit everything else.
  const bounded = Object.create(modem, { dial: { value: dial } }) as typeof modem;
  return Object.create(docker, { modem: { value: bounded } }) as Docker;
}

/** Converts dockerode's errors: answered with a status, or unreachable. */
export function asContainerError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if ('statusCode' in error && typeof error.statusCode === 'number') {
    return new DockerRefusedError(error.statusCode, error.message.trim(), error);
  }
  // System errors of the connection (ECONNREFUSED, ENOENT, ECONNRESET ...) have a text code.
  if ('code' in error && typeof error.code === 'string') {
    return new DockerUnavailableError(`The container engine cannot be reached (${error.code})`, {
      cause: error,
    });
  }
  return error;
}
