import type { Readable } from 'node:stream';

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

interface Head<Status extends number> {
  readonly status: Status;
  readonly headers: ReplyHeaders | undefined;
}

/** An answer with a JSON body, or without a body. */
export interface Reply<Status extends number = number, Body = unknown> extends Head<Status> {
  readonly kind: 'json';
  readonly body: Body;
}

export interface StreamReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'stream';
  /** A string is the complete body and is sent unchanged. */
  readonly source: Readable | AsyncIterable<string | Uint8Array> | string;
  readonly contentType: string;
}

export interface FileReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'file';
  readonly content: Readable | Buffer;
  readonly contentType: string;
  /** File name for the download; undefined lets the browser display the file. */
  readonly name: string | undefined;
}

export interface HtmlReply<Status extends number = number> extends Head<Status> {
  readonly kind: 'html';
  readonly html: string;
}

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

/** Answers with a stream, read at the client's pace and destroyed when the client disconnects. */
export function streamReply<const Status extends number>(
  status: Status,
  source: StreamReply['source'],
  contentType: string,
  headers?: ReplyHeaders,
): StreamReply<Status> {
  return { kind: 'stream', status, source, contentType, headers };
}

/** Answers with a file. @param file.name the name to save it under. */
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

/** Answers with an HTML page. @param html a page in which all inserted values are already escaped. */
export function htmlReply<const Status extends number>(
  status: Status,
  html: string,
  headers?: ReplyHeaders,
): HtmlReply<Status> {
  return { kind: 'html', status, html, headers };
}

/** Redirects the browser. @param location a URL, or a path on this listener. */
export function redirect<const Status extends 301 | 302 | 303 | 307 | 308>(
  status: Status,
  location: string,
  headers?: ReplyHeaders,
): RedirectReply<Status> {
  return { kind: 'redirect', status, location, headers };
}
