import type { Readable } from 'node:stream';

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

/** An answer whose body is sent as JSON, or that has none. */
export interface Reply<Status extends number = number, Body = unknown> {
  readonly kind: 'json';
  readonly status: Status;
  readonly body: Body;
  readonly headers: ReplyHeaders | undefined;
}

/** An answer whose body comes piece by piece. */
export interface StreamReply<Status extends number = number> {
  readonly kind: 'stream';
  readonly status: Status;
  /** Text is all of it: it goes out as it is. */
  readonly source: Readable | AsyncIterable<string | Uint8Array> | string;
  readonly contentType: string;
  readonly headers: ReplyHeaders | undefined;
}

export function reply<const Status extends number>(status: Status): Reply<Status, undefined>;
export function reply<const Status extends number, const Body>(
  status: Status,
  body: Body,
  headers?: ReplyHeaders,
): Reply<Status, Body>;
export function reply(status: number, body?: unknown, headers?: ReplyHeaders): Reply {
  return { kind: 'json', status, body, headers };
}

/** Answers with a body that is read as fast as the client takes it, and left when it goes. */
export function streamReply<const Status extends number>(
  status: Status,
  source: StreamReply['source'],
  contentType: string,
  headers?: ReplyHeaders,
): StreamReply<Status> {
  return { kind: 'stream', status, source, contentType, headers };
}
