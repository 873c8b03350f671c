import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { LogRange } from './container-logs.js';
import { callDocker } from './docker-client.js';

/**
 * Opens a container's log as Docker's multiplexed stream. Not through `container.logs`, which
 * reads all of a log that it does not follow into memory.
 */
export function openLog(
  docker: Docker,
  containerId: string,
  timeoutMs: number,
  range: LogRange & {
    readonly tail?: number | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Readable> {
  const { since, follow, tail, signal } = range;
  const request = {
    path: `/containers/${containerId}/logs?`,
    method: 'GET',
    isStream: true,
    statusCodes: { 200: true },
    options: {
      stdout: true,
      stderr: true,
      timestamps: true,
      follow,
      // After a known line there is no tail: everything that follows it is wanted.
      ...(since === undefined ? (tail === undefined ? {} : { tail }) : { since }),
    },
    ...(signal ? { abortSignal: signal } : {}),
  };
  const modem = docker.modem;
  return callDocker(
    timeoutMs,
    () =>
      new Promise<Readable>((resolve, reject) => {
        modem.dial(request, (error, stream) => {
          if (error) reject(error);
          // With `isStream` and without `hijack` it is always the response.
          else resolve(stream as Readable);
        });
      }),
  );
}
