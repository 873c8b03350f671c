import zlib from 'node:zlib';
import type { Transform } from 'node:stream';
import { OutboundError } from './outbound-error.js';

/** Most encodings of a body. More is a decompression bomb or a mistake. */
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
  gzip: () => zlib.createGunzip(gentle),
  'x-gzip': () => zlib.createGunzip(gentle),
  br: () => zlib.createBrotliDecompress(brotli),
  // Servers send deflate with the zlib header, as specified, or without.
  deflate: (first) =>
    (first & 0x0f) === 8 ? zlib.createInflate(gentle) : zlib.createInflateRaw(gentle),
  ...(zstd && { zstd: () => zstd(zstdWindow) }),
};

/** The encodings that this process can decode, in the form of `Accept-Encoding`. */
export const ACCEPTED_ENCODINGS = Object.keys(DECODERS)
  .filter((name) => name !== 'x-gzip')
  .join(', ');

/** Returns the encodings of a `Content-Encoding`. @throws OutboundError `BAD_ENCODING` for unsupported ones. */
export function encodingsOf(header: string | undefined): readonly string[] {
  const names = (header ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
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
  for (const name of encodings.toReversed()) current = through(current, name);
  yield* current;
}

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
    throw new OutboundError(
      'BAD_ENCODING',
      "The page's content does not match its content encoding",
      { cause: error },
    );
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
