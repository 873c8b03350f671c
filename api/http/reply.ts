import type { Readable } from 'node:stream';

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

interface Head<Status extends number> {
  readonly status: Status;
  readonly headers: ReplyHeaders | undefined;
}

/** An answer whose body is sent as JSON, or that has none. */
export interface Reply<Status extends number = number, Body = unknown> extends Head<Status> {
  readonly kind: 'json';
  readonly body: Body;
}

/** An answer whose body comes piece by piece. */
export interface StreamReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'stream';
  /** Text is all of it: it goes out as it is. */
  readonly source: Readable | AsyncIterable<string | Uint8Array> | string;
  readonly contentType: string;
}

/** An answer that is a file. */
export interface FileReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'file';
  readonly content: Readable | Buffer;
  readonly contentType: string;
  /** To be saved under; without one a browser may show it. */
  readonly name: string | undefined;
}

/** A page for people. */
export interface HtmlReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'html';
  readonly html: string;
}

/** An answer that sends a browser elsewhere. */
export interface RedirectReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'redirect';
  readonly location: string;
}

export type AnyReply = Reply | StreamReply | FileReply | HtmlReply | RedirectReply;

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

/** @param file.name what it is to be saved under. */
export function fileReply<const Status extends number>(
  status: Status,
  file: {
    readonly content: FileReply['content'];
    readonly contentType: string;
    readonly name?: string;
  },
  headers?: ReplyHeaders,
): FileReply<Status> {
  const { content, contentType, name } = file;
  return { kind: 'file', status, content, contentType, name, headers };
}

/** @param html whose every part from elsewhere is escaped already. */
export function htmlReply<const Status extends number>(
  status: Status,
  html: string,
  headers?: ReplyHeaders,
): HtmlReply<Status> {
  return { kind: 'html', status, html, headers };
}

/** @param location a URL, or a path of our own. */
export function redirect<const Status extends 301 | 302 | 303 | 307 | 308>(
  status: Status,
  location: string,
  headers?: ReplyHeaders,
): RedirectReply<Status> {
  return { kind: 'redirect', status, location, headers };
}
