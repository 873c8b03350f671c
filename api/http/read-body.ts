import type { IncomingMessage } from 'node:http';
import { BadRequestError, ServiceError } from '../../src/errors.js';
import { MAX_BODY_BYTES, type BodyFormat } from './body-format.js';

/**
 * Reads the bytes of a body, or `undefined` when the request has none.
 *
 * @param format undefined when the endpoint takes no body: its size is still checked, its content
 *   not.
 */
export async function readBody(
  request: IncomingMessage,
  format: BodyFormat | undefined,
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
  const bytes = await readAll(request, maxBytes);
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

/** A client that leaves half way makes no sense of an answer, so its error just ends the request. */
function readAll(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const endedEarly = () => reject(new BadRequestError('Request body ended early'));
    if (request.destroyed) return endedEarly();
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) {
        // What still comes is thrown away as it comes; the server's request timeout bounds it.
        request.off('data', onData);
        request.resume();
        reject(tooLarge(maxBytes));
      } else {
        chunks.push(chunk);
      }
    };
    request.on('data', onData);
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', endedEarly);
    request.once('close', endedEarly);
  });
}
