import type { IncomingMessage } from 'node:http';
import { BadRequestError, ServiceError } from '../../src/lib/errors.js';
import { MAX_BODY_BYTES, type BodyFormat } from './body-format.js';

export interface BodyBounds {
  /** Minimum pace: `paceBytes` must arrive within `paceMs`. */
  readonly paceBytes: number;
  readonly paceMs: number;
  /** Reserves memory for received bytes. @throws ServiceError if the memory is exhausted. */
  readonly makeRoom: (bytes: number) => void;
}

/** Reads the bytes of a body; without a `format` the endpoint accepts no body, and only the size is checked. */
export async function readBody(
  request: IncomingMessage,
  format: BodyFormat | undefined,
  bounds: BodyBounds,
): Promise<Buffer | undefined> {
  const { headers, method } = request;
  if (method === 'GET' || method === 'HEAD') return undefined;
  const length = Number(headers['content-length'] ?? 0);
  const maxBytes = format?.maxBytes ?? MAX_BODY_BYTES;
  if (length > maxBytes) throw tooLarge(maxBytes);
  if (headers['transfer-encoding'] === undefined && length === 0) return undefined;

  if (format && !takes(format, request)) {
    throw new ServiceError(415, `Content-Type must be ${format.types.join(' or ')}`);
  }
  const bytes = await readAll(request, maxBytes, bounds);
  return format && bytes.length > 0 ? bytes : undefined;
}

function takes({ types }: BodyFormat, { headers }: IncomingMessage): boolean {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') return false;
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return types.length === 0 || (type !== undefined && types.includes(type));
}

function tooLarge(maxBytes: number): ServiceError {
  const most = maxBytes >= 1024 * 1024 ? `${maxBytes / 1024 / 1024} MB` : `${maxBytes} bytes`;
  return new ServiceError(413, `Request body is too large (at most ${most})`);
}

/** Reads the whole body; an error after a disconnect just ends the request. */
function readAll(
  request: IncomingMessage,
  maxBytes: number,
  { makeRoom, paceBytes, paceMs }: BodyBounds,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let sizeBefore = 0;
    const pace = setInterval(() => {
      if (size - sizeBefore < paceBytes)
        refuse(new BadRequestError('Request body arrives too slowly: send it faster'));
      sizeBefore = size;
    }, paceMs);
    const refuse = (error: unknown) => {
      clearInterval(pace);
      // Discards the rest of the body; the server limits its size and duration.
      request.off('data', onData);
      request.resume();
      reject(error instanceof Error ? error : new Error('unknown', { cause: error }));
    };
    const endedEarly = () =>
      refuse(new BadRequestError('Request body is incomplete: the connection ended early'));
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return refuse(tooLarge(maxBytes));
      try {
        makeRoom(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        refuse(error);
      }
    };
    if (request.destroyed) return endedEarly();
    request.on('data', onData);
    request.once('end', () => {
      clearInterval(pace);
      request.off('close', endedEarly);
      resolve(Buffer.concat(chunks));
    });
    request.once('error', endedEarly);
    request.once('close', endedEarly);
  });
}
