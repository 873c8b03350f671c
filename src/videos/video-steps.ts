import type { SeenVideo } from '../types/videos.js';
import type { MediaFiles } from './media-files.js';
import {
  VideoNotOrderedError,
  VideoProviderError,
  VideoRefusedError,
  type Prediction,
  type VideoProvider,
} from './video-provider.js';
import type { VideoStore } from './video-store.js';

/** Maximum bytes of a file. */
const MAX_FILE_BYTES = 500 * 1024 * 1024;

/** Milliseconds for a whole file, and for its next bytes. */
const FILE_MS = 10 * 60_000;
const SILENCE_MS = 30_000;

/** Maximum number of characters of the provider's own words that are shown. */
const MAX_WORDS = 300;

const LOST = "The provider's answer was lost; the video is not requested again, since it may cost";
const GONE = 'The provider has already deleted the file';
const NO_FILE = 'The provider named no file';
const ELSEWHERE = 'The provider named a file that is not on its own hosts';
const NO_VIDEO = 'The file of the provider is not a video';
const TOO_LARGE = `The file is larger than ${MAX_FILE_BYTES / 1024 ** 2} MB, or than the limit for all files`;
const NO_LENGTH = 'The provider sent a file without its length';

/** A file that is no video of ours, whatever is tried. */
class UnusableFileError extends Error {
  override readonly name = 'UnusableFileError';
}

interface Options {
  readonly provider: VideoProvider;
  readonly store: VideoStore;
  readonly files: MediaFiles;
  /** Maximum bytes of all files. */
  readonly limit: number;
}

/** The steps of a video at its provider. Each may be repeated, and ends the video if it fails permanently. */
export class VideoSteps {
  readonly #provider: VideoProvider;
  readonly #store: VideoStore;
  readonly #files: MediaFiles;
  readonly #maxBytes: number;

  constructor({ files, limit, provider, store }: Options) {
    this.#provider = provider;
    this.#store = store;
    this.#files = files;
    this.#maxBytes = Math.min(limit, MAX_FILE_BYTES);
  }

  /**
   * Requests a video at most once, and returns its prediction, also a stored one; undefined if the video has ended.
   * @throws VideoProviderError if nothing was requested
   */
  async request(id: string, signal: AbortSignal): Promise<string | undefined> {
    const order = await this.#store.claim(id);
    if (order === undefined) return undefined;
    if (order === 'lost') return this.#fail(id, LOST);
    if ('predictionId' in order) return order.predictionId;
    let isSent = false;
    let predictionId: string;
    try {
      predictionId = await this.#provider.create(order, signal, () => (isSent = true));
    } catch (error) {
      if (error instanceof VideoRefusedError) {
        return this.#fail(id, `The provider refused the video (status ${error.status})`);
      }
      if (isSent && !(error instanceof VideoNotOrderedError)) return this.#fail(id, LOST);
      await this.#store.release(id);
      throw error;
    }
    // The step's result may be lost. If this fails instead, the run stores the id from the result.
    await this.#store.note(id, predictionId).catch(() => undefined);
    return predictionId;
  }

  /** Reads the state of the prediction, and ends a video that the provider has ended. @throws VideoProviderError */
  async check(id: string, signal: AbortSignal): Promise<SeenVideo> {
    const open = await this.#store.openPrediction(id);
    if (!open) return 'ended';
    if (open.status === 'cancelled') return 'cancelled';
    const prediction = await this.#provider.read(open.predictionId, signal);
    switch (prediction?.status) {
      case 'starting':
      case 'processing':
        return 'running';
      case 'succeeded':
        return 'succeeded';
      case 'canceled':
      case 'aborted':
        await this.#store.end(id, 'cancelled', 'The provider cancelled the video');
        return 'ended';
      case 'failed':
      case undefined:
        await this.#store.end(id, 'failed', reasonOf(prediction));
        return 'ended';
    }
  }

  /**
   * Fetches the file of a prediction that has succeeded, and completes the video.
   * @param onBytes is called with each piece.
   * @throws an error of the connection or the disk, after which the step may be repeated
   */
  async fetch(id: string, signal: AbortSignal, onBytes: () => void): Promise<void> {
    const open = await this.#store.openPrediction(id);
    if (!open || open.status === 'cancelled') return;
    await this.#files.removeAbandoned(id);
    const prediction = await this.#provider.read(open.predictionId, signal);
    const address = prediction?.file;
    try {
      if (address === undefined) throw new UnusableFileError(prediction ? NO_FILE : GONE);
      if (!this.#provider.isFile(address)) throw new UnusableFileError(ELSEWHERE);
      await this.#fetchFile(id, address, signal, onBytes);
    } catch (error) {
      if (!(error instanceof UnusableFileError)) throw error;
      await this.#store.end(id, 'failed', error.message);
    }
  }

  /** Cancels the prediction of a video. @throws VideoProviderError */
  async cancel(id: string, signal: AbortSignal): Promise<void> {
    const open = await this.#store.openPrediction(id);
    if (open) await this.#provider.cancel(open.predictionId, signal);
  }

  async #fetchFile(
    id: string,
    address: string,
    signal: AbortSignal,
    onBytes: () => void,
  ): Promise<void> {
    const silence = new AbortController();
    const timer = setTimeout(
      () => silence.abort(new VideoProviderError('The file stopped arriving')),
      SILENCE_MS,
    );
    const limits = AbortSignal.any([signal, silence.signal, AbortSignal.timeout(FILE_MS)]);
    try {
      await this.#provider.download(address, limits, async (file) => {
        const { body, isDelimited, length, status, type: contentType } = file;
        if (status === 404 || status === 410) throw new UnusableFileError(GONE);
        if (status >= 500 || status === 429)
          throw new VideoProviderError('The file is unavailable');
        if (status !== 200) {
          throw new UnusableFileError(`The provider refused the file (status ${status})`);
        }
        if (!/^video\/[\w.+-]{1,60}$/.test(contentType)) throw new UnusableFileError(NO_VIDEO);
        if (!isDelimited) throw new UnusableFileError(NO_LENGTH);
        const most = length ?? this.#maxBytes;
        if (most > this.#maxBytes) throw new UnusableFileError(TOO_LARGE);
        // A file of unknown size could evict more files than necessary: its size is reserved after its arrival.
        if (!(await this.#store.reserve(id, length ?? 0))) return;
        const bytes = await this.#files.write(
          id,
          bounded(body, most, () => {
            timer.refresh();
            onBytes();
          }),
          async (size) => length !== undefined || this.#store.reserve(id, size),
        );
        if (bytes === undefined) return;
        if (bytes === 0) {
          await this.#files.remove(id);
          throw new UnusableFileError(NO_VIDEO);
        }
        await this.#store.complete(id, { bytes, contentType });
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #fail(id: string, reason: string): Promise<undefined> {
    await this.#store.end(id, 'failed', reason);
  }
}

async function* bounded(
  body: AsyncIterable<Buffer>,
  most: number,
  onBytes: () => void,
): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > most) throw new UnusableFileError(TOO_LARGE);
    onBytes();
    yield piece;
  }
}

function reasonOf(prediction: Prediction | undefined): string {
  if (!prediction) return 'The provider does not have the video any more';
  const words = prediction.error?.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return words ? `The provider failed: ${words.slice(0, MAX_WORDS)}` : 'The provider failed';
}
