import type { Readable } from 'node:stream';
import type { ReplyHeaders } from './reply.js';

/** An answer as it is sent. */
export interface Answer {
  readonly status: number;
  readonly headers: ReplyHeaders | undefined;
  readonly contentType: string | undefined;
  readonly attachment?: string | undefined;
  readonly body: string | Buffer | Readable | undefined;
}
