import zlib from 'node:zlib';
import type { Transform } from 'node:stream';
import { OutboundError } from './outbound-error.js';

/** Maximum number of encodings of a body. A body with more is a decompression bomb or a mistake. */
const MAX_ENCODINGS = 2;

// A truncated page is still decoded as far as possible, as in a browser.
const gentle = { finishFlush: zlib.constants.Z_SYNC_FLUSH };
const brotli = { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH };

/** Only some versions of Node support zstd. */
const zstd = (
  zlib as {
    createZstdDecompress?: (options: { params: Readonly<Record<number, number>> }) => Transform;
  }
).createZstdDecompress;

/** ZSTD_d_windowLogMax: 8 MB, the web's limit. Otherwise a few bytes could request 128 MB. */
const zstdWindow = { params: { 100: 23 } };

const DECODERS: Readonly<Record<string, (first: number) => Transform>> = {
  // The head of gzip is removed first; bytes after the first member are ignored, as in browsers.
  gzip: () => zlib.createInflateRaw(gentle),
  br: () => zlib.createBrotliDecompress(brotli),
  // Servers send deflate with the zlib header, as specified, or without.
  deflate: (first) =>
    (first & 0x0f) === 8 ? zlib.createInflate(gentle) : zlib.createInflateRaw(gentle),
  ...(zstd && { zstd: () => zstd(zstdWindow) }),
};

/** The encodings that this process can decode, in the form of `Accept-Encoding`. */
export const ACCEPTED_ENCODINGS = Object.keys(DECODERS).join(', ');

/** Encodings that change the bytes. Other names, such as `none` and `utf-8`, change nothing, as in browsers. */
const ENCODINGS = new Set([
  ...Object.keys(DECODERS),
  ...['aes128gcm', 'bzip2', 'compress', 'dcb', 'dcz', 'exi', 'lzma', 'pack200-gzip', 'sdch', 'xz'],
  'zstd',
]);

/** Returns the encodings of a `Content-Encoding`. @throws OutboundError `BAD_ENCODING` for unsupported ones. */
export function encodingsOf(header: string | undefined): readonly string[] {
  const names = (header ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase().replace(/^x-/, ''))
    .filter((name) => ENCODINGS.has(name));
  const known = names.every((name) => Object.hasOwn(DECODERS, name));
  if (known && names.length <= MAX_ENCODINGS) return names;
  throw new OutboundError('BAD_ENCODING', 'The page has an unsupported content encoding');
}

/** Decodes a body piece by piece, in reverse order of `encodings`. @throws OutboundError `BAD_ENCODING` */
export async function* decompressed(
  body: AsyncIterable<Buffer>,
  encodings: readonly string[],
): AsyncGenerator<Buffer, void> {
  let current = body;
  for (const name of encodings.toReversed()) {
    current = through(name === 'gzip' ? withoutGzipHead(current) : current, name);
  }
  yield* current;
}

/** Maximum bytes of the head of a gzip member, with the name of a file and a comment. */
const MAX_GZIP_HEAD = 8 * 1024;

/** Removes the head of the first gzip member. @throws OutboundError `BAD_ENCODING` if there is none. */
async function* withoutGzipHead(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let start: Buffer | undefined = Buffer.alloc(0);
  for await (const piece of body) {
    if (start === undefined) yield piece;
    else {
      start = Buffer.concat([start, piece]);
      const length = gzipHeadLength(start);
      if (length === undefined && start.length <= MAX_GZIP_HEAD) continue;
      if (length === undefined) throw badEncoding();
      yield start.subarray(length);
      start = undefined;
    }
  }
}

/** Returns the length of a gzip head (RFC 1952, 2.3); undefined if more bytes are needed. */
function gzipHeadLength(bytes: Buffer): number | undefined {
  const signature = [0x1f, 0x8b, 8];
  if (signature.some((byte, at) => at < bytes.length && bytes[at] !== byte)) throw badEncoding();
  if (bytes.length < 10) return undefined;
  const flags = bytes[3] ?? 0;
  let end = 10;
  if (flags & 4) {
    if (bytes.length < end + 2) return undefined;
    end += 2 + bytes.readUInt16LE(end);
  }
  // A file name and a comment, both ended by NUL.
  for (const flag of [8, 16]) {
    if (!(flags & flag)) continue;
    const zero = bytes.indexOf(0, end);
    if (zero < 0) return undefined;
    end = zero + 1;
  }
  if (flags & 2) end += 2;
  return end <= bytes.length ? end : undefined;
}

const badEncoding = (cause?: unknown): OutboundError =>
  new OutboundError('BAD_ENCODING', "The page's content does not match its content encoding", {
    cause,
  });

async function* through(body: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer, void> {
  const source = body[Symbol.asyncIterator]();
  let piece = await source.next();
  if (piece.done === true) return;
  const decoder = DECODERS[name]?.(piece.value[0] ?? 0);
  if (!decoder) throw new TypeError(`no decoder for ${name}`);
  let failure: Error | undefined;
  const feed = async () => {
    try {
      while (piece.done !== true && !decoder.destroyed) {
        if (!decoder.write(piece.value)) await drained(decoder);
        piece = await source.next();
      }
      decoder.end();
    } catch (error) {
      failure = error instanceof Error ? error : new Error('The body ended early');
      decoder.destroy();
    }
  };
  const feeding = feed();
  try {
    for await (const part of decoder as AsyncIterable<Buffer>) yield part;
    if (failure !== undefined) throw failure;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw badEncoding(error);
  } finally {
    decoder.destroy();
    await source.return?.();
    await feeding;
  }
}

const drained = (decoder: Transform): Promise<void> =>
  new Promise((resolve) => {
    const go = () => {
      decoder.off('drain', go).off('close', go);
      resolve();
    };
    decoder.on('drain', go).on('close', go);
  });
