import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { TooManyRequestsError } from '../../src/lib/errors.js';
import type { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import type { AddressReader } from './client-address.js';

/** A listener's parts that the server of other names shares. */
export interface SharedParts {
  readonly log: Logger;
  /** Reports whether a request's `Host` is a name of the listener, which comes before all others. */
  readonly isOwn: (request: IncomingMessage) => boolean;
  readonly addressOf: AddressReader;
  /** Counts a request of an address. @returns the refusal of one above the limit. */
  readonly guard: (address: string) => TooManyRequestsError | undefined;
  readonly requests: RequestSeconds | undefined;
}

/** A server behind the same port for requests whose `Host` is not a name of the listener. */
export interface OtherNames {
  owns(request: IncomingMessage): boolean;
  serve(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends all upgraded connections. */
  close(): void;
}
