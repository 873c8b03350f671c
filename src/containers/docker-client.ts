import Docker from 'dockerode';
import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';

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
 * One call to Docker with a bound in milliseconds. A call that is given up may still take
 * effect: whoever makes it looks at what is there before it makes the next.
 *
 * @throws DockerUnavailableError when Docker is not there or too slow.
 * @throws DockerRefusedError with Docker's status otherwise.
 */
export async function callDocker<T>(
  timeoutMs: number,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  // The race beside the signal, because the client does not watch the signal in all of its phases.
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new DockerUnavailableError(`The container engine did not answer in ${timeoutMs} ms`));
      timeout.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([call(timeout.signal), tooLate]);
  } catch (error) {
    throw asContainerError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** The same, where `undefined` stands for one of the statuses that mean "nothing to do". */
export async function callDockerUnless<T>(
  statuses: readonly number[],
  timeoutMs: number,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await callDocker(timeoutMs, call);
  } catch (error) {
    if (error instanceof DockerRefusedError && statuses.includes(error.statusCode))
      return undefined;
    throw error;
  }
}

/** Sorts what the client throws into "answered with a status" and "not reached". */
export function asContainerError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if ('statusCode' in error && typeof error.statusCode === 'number') {
    return new DockerRefusedError(error.statusCode, error.message.trim(), { cause: error });
  }
  // System errors of the connection (ECONNREFUSED, ENOENT, ECONNRESET ...) carry a text code.
  if ('code' in error && typeof error.code === 'string') {
    return new DockerUnavailableError(`The container engine cannot be reached (${error.code})`, {
      cause: error,
    });
  }
  return error;
}
