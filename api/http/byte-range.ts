import type { Readable } from 'node:stream';
import { fileReply, reply, type FileReply, type Reply } from './reply.js';

/** A file that can be read in parts. */
export interface RangedFile {
  readonly size: number;
  readonly contentType: string;
  /** Opens the bytes from `start` to `end`, both included. */
  open(start: number, end: number): Readable;
  /** Frees a file that is not opened. */
  discard(): void;
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/**
 * Answers with a file, or with the part that a `Range` header names. Several ranges in one header are answered with
 * the whole file, as RFC 9110 allows.
 */
export function rangeReply(
  header: string | undefined,
  file: RangedFile,
): FileReply<200> | FileReply<206> | Reply<416, { error: string }> {
  const { contentType, size } = file;
  const range = rangeOf(header, size);
  const ranged = { 'Accept-Ranges': 'bytes' };
  if (range === 'unsatisfiable') {
    file.discard();
    const error = 'The range is beyond the end of the file';
    return reply(416, { error }, { ...ranged, 'Content-Range': `bytes */${size}` });
  }
  const { end, start } = range ?? { start: 0, end: size - 1 };
  const content = file.open(start, end);
  const headers = { ...ranged, 'Content-Length': String(end - start + 1) };
  if (!range) return fileReply(200, { content, contentType }, headers);
  const part = { ...headers, 'Content-Range': `bytes ${start}-${end}/${size}` };
  return fileReply(206, { content, contentType }, part);
}

/** Returns the range of a header; undefined for the whole file. */
export function rangeOf(
  header: string | undefined,
  size: number,
): Range | 'unsatisfiable' | undefined {
  const [whole, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header ?? '') ?? [];
  if (whole === undefined || (first === '' && last === '')) return undefined;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end };
}
