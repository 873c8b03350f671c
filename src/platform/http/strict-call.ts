import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Of an answer's head; Node counts. An agent that sends more says nothing that we want to hear. */
const MAX_HEAD_BYTES = 16 * 1024;

/** Answers of the kind 1xx before the one that counts. */
const MAX_NOTICES = 10;

/** More came, or more was said before the answer, than the call allows. */
export class AnswerTooLongError extends Error {
  override readonly name = 'AnswerTooLongError';
}

export interface StrictCall {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Posted as JSON; without it the call is a GET. */
  readonly body?: unknown;
  /** The one media type that is taken as an answer. */
  readonly accept: string;
  /** Most bytes of an answer, framing included. */
  readonly maxBytes?: number;
  /** So many bytes are read in a second, and at once in the beginning. */
  readonly bytesPerSecond?: number;
  /** Ends the call and the answer, whoever reads it. */
  readonly signal: AbortSignal;
  /** Without one the call has a connection of its own. */
  readonly agent?: http.Agent;
}

export interface StrictAnswer {
  readonly status: number;
  /** As it comes; to be read, or the connection stays. None where it is not what was asked for. */
  readonly body: AsyncGenerator<Buffer, void> | undefined;
}

/**
 * Calls somebody who is not trusted, such as an agent's gateway. No redirect is followed and nothing
 * unpacked, and what is read is bounded.
 *
 * @throws what keeps the connection from being made, breaks it off or aborts the signal; reading the
 *   body does so as well. AnswerTooLongError
 */
export function strictCall(call: StrictCall): Promise<StrictAnswer> {
  const { accept, agent = false, body, headers, signal, url } = call;
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
      signal,
      maxHeaderSize: MAX_HEAD_BYTES,
    });
    let read = () => 0;
    let notices = 0;
    request.on('socket', (socket) => (read = readOn(socket)));
    request.on('information', () => {
      if (++notices > MAX_NOTICES)
        request.destroy(new AnswerTooLongError('The answer never begins'));
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('The answer asks for another protocol'));
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const status = response.statusCode ?? 0;
      if (isWanted(response, accept)) {
        return resolve({ status, body: bounded(response, read, call) });
      }
      response.on('error', () => undefined); // nobody reads it
      response.destroy();
      resolve({ status, body: undefined });
    });
    request.end(sent);
  });
}

/** Counts what a connection reads from here on: chunks have a framing, which can be most of it. */
function readOn(socket: Socket): () => number {
  const before = socket.bytesRead;
  return () => socket.bytesRead - before;
}

function isWanted({ headers }: http.IncomingMessage, accept: string): boolean {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return type === accept && (headers['content-encoding'] ?? 'identity') === 'identity';
}

async function* bounded(
  response: http.IncomingMessage,
  read: () => number,
  { bytesPerSecond = Infinity, maxBytes = Infinity, signal }: StrictCall,
): AsyncGenerator<Buffer, void> {
  const began = performance.now();
  // Without an encoding its pieces are bytes.
  for await (const piece of response as AsyncIterable<Buffer>) {
    const bytes = read();
    if (bytes > maxBytes)
      throw new AnswerTooLongError(`The answer has more than ${maxBytes} bytes`);
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
