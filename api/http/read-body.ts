import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { BadRequestError, ServiceError } from '../../src/errors.js';

/** Spec section 8: every larger body is refused before the handler. */
export const MAX_BODY_BYTES = 1024 * 1024;
const MAX_DEPTH = 100;

const tooLarge = () => new ServiceError(413, 'Request body is too large (at most 1 MB)');

/**
 * Reads a JSON body, or `undefined` when the request has none.
 *
 * @param wanted false when the endpoint takes no body: its size is still checked, its content not.
 */
export async function readJsonBody(request: IncomingMessage, wanted: boolean): Promise<unknown> {
  const { headers } = request;
  const length = headers['content-length'];
  if (Number(length ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  if (headers['transfer-encoding'] === undefined && Number(length ?? 0) === 0) return undefined;

  if (wanted && !isPlainJson(request)) {
    throw new ServiceError(415, 'Content-Type must be application/json');
  }
  const bytes = await readAll(request);
  if (!wanted || bytes.length === 0) return undefined;

  if (!isUtf8(bytes)) throw new BadRequestError('Request body is not valid UTF-8');
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new ServiceError(400, 'Request body is not valid JSON', undefined, {}, { cause: error });
  }
  refuseUnstorable(body, 'body');
  return body;
}

function isPlainJson({ headers }: IncomingMessage): boolean {
  const encoding = headers['content-encoding'] ?? 'identity';
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return encoding === 'identity' && type === 'application/json';
}

/** A client that leaves half way makes no sense of an answer, so its error just ends the request. */
function readAll(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const endedEarly = () => reject(new BadRequestError('Request body ended early'));
    if (request.destroyed) return endedEarly();
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) {
        // What still comes is thrown away as it comes; the server's request timeout bounds it.
        request.off('data', onData);
        request.resume();
        reject(tooLarge());
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

/**
 * PostgreSQL stores neither NUL nor half a surrogate pair, and deep nesting overflows the stack of
 * whatever walks it later: such input is refused here, once, for every endpoint.
 */
export function refuseUnstorable(input: unknown, part: string): void {
  let level: unknown[] = [input];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new BadRequestError(`${part} is nested too deeply`);
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === 'string') refuseText(value, part);
      else if (Array.isArray(value)) for (const element of value) next.push(element);
      else if (typeof value === 'object' && value !== null) {
        for (const [key, element] of Object.entries(value)) {
          refuseText(key, part);
          next.push(element);
        }
      }
    }
    level = next;
  }
}

function refuseText(text: string, part: string): void {
  // With the `u` flag, \p{Surrogate} matches only surrogates without their other half.
  if (text.includes('\0') || /\p{Surrogate}/u.test(text)) {
    throw new BadRequestError(`${part} contains a character that cannot be stored`);
  }
}
