import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Maximum bytes of an answer's head, enforced by Node. A larger head is not from a well-behaved agent. */
const MAX_HEAD_BYTES = 16 * 1024;

/** Maximum number of informational (1xx) answers allowed before the final one. */
const MAX_NOTICES = 10;

/** An error: the answer, or the data before it, is longer than the call allows. */
export class ResponseTooLargeError extends Error {
  override readonly name = 'ResponseTooLargeError';
}

/** The beginning of an answer. */
export interface AnswerHead {
  readonly status: number;
  /** The media type in lower case, without parameters. */
  readonly type: string;
  /** Bytes of the body, if the answer states them. */
  readonly length: number | undefined;
  /** True if a body that breaks off is recognized: it has a length, or is chunked. */
  readonly isDelimited: boolean;
}

export interface StrictCall {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The request body, posted as JSON; without a body the call is a GET. */
  readonly body?: unknown;
  /** The only accepted media type of the answer, unless `accepts` decides. */
  readonly accept: string;
  readonly accepts?: (type: string) => boolean;
  /** Maximum bytes of an answer, including chunk framing. */
  readonly maxBytes?: number;
  /** Bytes read per second, also the initial burst. */
  readonly bytesPerSecond?: number;
  /** The signal that ends the call and the answer's body. */
  readonly signal: AbortSignal;
  /** The connection pool; without an agent the call opens a new connection. */
  readonly agent?: http.Agent;
  /** Is called when the connection is made, before anything is sent. */
  readonly onConnected?: (() => void) | undefined;
  /** The certificate of the server's authority; Node's usual ones by default. */
  readonly ca?: string | undefined;
}

export interface BoundedResponse extends AnswerHead {
  /** The answer's body, undefined for another media type; the connection stays open until its end. */
  readonly body: AsyncGenerator<Buffer, void> | undefined;
}

/**
 * Calls an untrusted server, such as an agent's gateway. Follows no redirect, decompresses nothing and limits
 * the bytes read.
 * @throws connection errors and the signal's reason, also while the body is read; ResponseTooLargeError
 */
export function boundedRequest(call: StrictCall): Promise<BoundedResponse> {
  const { accept, agent = false, body, ca, headers, onConnected, signal, url } = call;
  const { request: open } = url.startsWith('https:') ? https : http;
  const sent = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = open(url, {
      method: sent === undefined ? 'GET' : 'POST',
      headers: {
        accept,
        'accept-encoding': 'identity',
        ...(sent !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(sent),
        }),
        ...headers,
      },
      agent,
      ca,
      signal,
      maxHeaderSize: MAX_HEAD_BYTES,
    });
    let read = () => 0;
    let notices = 0;
    request.on('socket', (socket) => {
      read = readOn(socket);
      if (onConnected === undefined) return;
      const connected = url.startsWith('https:') ? 'secureConnect' : 'connect';
      if (socket.connecting) socket.once(connected, onConnected);
      else onConnected();
    });
    request.on('information', () => {
      if (++notices > MAX_NOTICES)
        request.destroy(
          new ResponseTooLargeError('The answer never begins: too many informational answers'),
        );
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('The answer switches to another protocol'));
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const head = headOf(response);
      if (isWanted(head.type, response, call)) {
        return resolve({ ...head, body: bounded(response, read, call) });
      }
      response.on('error', () => undefined); // the body is not read
      response.destroy();
      resolve({ ...head, body: undefined });
    });
    request.end(sent);
  });
}

/** Counts the bytes that a connection receives from now on, with chunk framing, which can be most. */
function readOn(socket: Socket): () => number {
  const before = socket.bytesRead;
  return () => socket.bytesRead - before;
}

/** Returns the head of an answer. */
export function headOf({ headers, statusCode: status = 0 }: http.IncomingMessage): AnswerHead {
  const length = headers['content-length'];
  return {
    status,
    type: headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '',
    length: length === undefined ? undefined : Number(length),
    isDelimited: length !== undefined || headers['transfer-encoding'] === 'chunked',
  };
}

function isWanted(
  type: string,
  { headers }: http.IncomingMessage,
  { accept, accepts = (other) => other === accept }: StrictCall,
): boolean {
  return accepts(type) && (headers['content-encoding'] ?? 'identity') === 'identity';
}

async function* bounded(
  response: http.IncomingMessage,
  read: () => number,
  { bytesPerSecond = Infinity, maxBytes = Infinity, signal }: StrictCall,
): AsyncGenerator<Buffer, void> {
  const began = performance.now();
  // Without an encoding the pieces are buffers.
  for await (const piece of response as AsyncIterable<Buffer>) {
    const bytes = read();
    if (bytes > maxBytes)
      throw new ResponseTooLargeError(`The answer has more than ${maxBytes} bytes`);
    yield piece;
    const early = (bytes / bytesPerSecond - 1) * 1_000 - (performance.now() - began);
    if (early > 0) await delay(early, undefined, { signal });
  }
}

/** Reads a whole body as UTF-8. */
export async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}
