import * as z from 'zod';
import { tryParseJson } from '../lib/json.js';
import { boundedRequest, textOf } from '../platform/http/strict-call.js';
import type { FetchedFile, OutboundClient } from '../platform/outbound/outbound.js';
import type { AspectRatio } from '../types/videos.js';
import type { VideoSettings } from './settings.js';

/** Milliseconds for one call of the API. */
const CALL_TIMEOUT_MS = 15_000;

/** Maximum bytes of an answer of the API; predictions contain their logs. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** The host of the provider's files, beside the API's own; its subdomains as well. */
const FILE_HOST = 'replicate.delivery';

const MAX_URL = 4_096;

/** Statuses of a creation that may succeed later: of the token, of the account's money and of its quota. */
const NOT_NOW: readonly number[] = [401, 402, 429];

const predictionId = z.string().regex(/^[\w-]{1,128}$/);

const url = z.string().min(1).max(MAX_URL);

const prediction = z.object({
  id: predictionId,
  status: z.enum(['starting', 'processing', 'succeeded', 'failed', 'canceled', 'aborted']),
  error: z.unknown(),
  /** One file, or several. */
  output: z.unknown(),
});

/** The video to make. */
export interface VideoOrder {
  readonly prompt: string;
  readonly duration: number | null;
  readonly aspectRatio: AspectRatio | null;
}

export interface Prediction {
  readonly status: z.output<typeof prediction>['status'];
  /** The provider's own words about a failure. */
  readonly error: string | undefined;
  /** Address of the first file; undefined if there is none. */
  readonly file: string | undefined;
}

/** The provider does not answer, or not in its format: the call may be repeated. */
export class VideoProviderError extends Error {
  override readonly name: string = 'VideoProviderError';
}

/** The provider has ordered nothing, for a reason that passes: a full quota, or an account to be repaired. */
export class VideoNotOrderedError extends VideoProviderError {
  override readonly name = 'VideoNotOrderedError';

  constructor(status: number) {
    super(`The video provider accepts no requests now (status ${status})`);
  }
}

/** The provider refuses the request permanently. */
export class VideoRefusedError extends Error {
  override readonly name = 'VideoRefusedError';

  constructor(readonly status: number) {
    super(`The video provider refused the request with status ${status}`);
  }
}

interface Options {
  readonly settings: VideoSettings;
  readonly webUrl: string;
  readonly outbound: Pick<OutboundClient, 'download'>;
}

/** The provider's predictions API, and its files. */
export class VideoProvider {
  readonly #settings: VideoSettings;
  readonly #webUrl: string;
  readonly #outbound: Pick<OutboundClient, 'download'>;

  constructor({ outbound, settings, webUrl }: Options) {
    this.#settings = settings;
    this.#webUrl = webUrl;
    this.#outbound = outbound;
  }

  /**
   * Orders a video, and returns the id of its prediction.
   * @param onConnected is called before anything is sent: an error without it has ordered nothing.
   * @throws VideoRefusedError; VideoNotOrderedError; VideoProviderError if the answer is lost, invalid or a server error
   */
  async create(order: VideoOrder, signal: AbortSignal, onConnected: () => void): Promise<string> {
    const { model = '' } = this.#settings;
    const { aspectRatio, duration, prompt } = order;
    const { answer, status } = await this.#call(`/v1/models/${model}/predictions`, {
      signal,
      onConnected,
      body: {
        input: {
          prompt,
          ...(duration !== null && { duration }),
          ...(aspectRatio !== null && { aspect_ratio: aspectRatio }),
        },
        ...this.#webhook(),
      },
    });
    const id = z.object({ id: predictionId }).safeParse(answer).data?.id;
    if (isSuccess(status) && id !== undefined) return id;
    if (NOT_NOW.includes(status)) throw new VideoNotOrderedError(status);
    throw status >= 400 && status < 500 ? new VideoRefusedError(status) : invalid(status);
  }

  /** Reads a prediction; undefined if the provider does not have it. @throws VideoProviderError */
  async read(id: string, signal: AbortSignal): Promise<Prediction | undefined> {
    const { answer, status } = await this.#call(`/v1/predictions/${id}`, { signal });
    if (status === 404) return undefined;
    const read = prediction.safeParse(answer).data;
    if (!isSuccess(status) || read?.id !== id) throw invalid(status);
    const { error, output } = read;
    return {
      status: read.status,
      error: typeof error === 'string' ? error : undefined,
      file: url.safeParse(Array.isArray(output) ? output[0] : output).data,
    };
  }

  /** Cancels a prediction, which may have ended. @throws VideoProviderError */
  async cancel(id: string, signal: AbortSignal): Promise<void> {
    const { status } = await this.#call(`/v1/predictions/${id}/cancel`, { signal, body: {} });
    if (status >= 500 || status === 429) throw invalid(status);
  }

  /** Reports whether an address is one of the provider's files: on the API's own host, or on that of files. */
  isFile(address: string): boolean {
    if (!URL.canParse(address)) return false;
    const file = new URL(address);
    if (file.username !== '' || file.password !== '') return false;
    if (file.origin === this.#origin) return true;
    const { hostname, port, protocol } = file;
    const isOfFiles = hostname === FILE_HOST || hostname.endsWith(`.${FILE_HOST}`);
    return isOfFiles && protocol === 'https:' && port === '';
  }

  /** Fetches a file without following redirects; `read` reads it while the connection is open. */
  async download<T>(
    address: string,
    signal: AbortSignal,
    read: (file: FetchedFile) => Promise<T>,
  ): Promise<T> {
    if (new URL(address).origin !== this.#origin) {
      return this.#outbound.download(address, { signal }, read);
    }
    // The operator's own setting names this host, which may be one of a private network.
    const { body, ...head } = await boundedRequest({
      url: address,
      accept: 'video/*',
      accepts: () => true,
      headers: this.#authorization(),
      signal,
    });
    return read({ ...head, body: body ?? nothing() });
  }

  get #origin(): string {
    return new URL(this.#settings.apiUrl).origin;
  }

  #authorization() {
    return { authorization: `Bearer ${this.#settings.apiToken ?? ''}` };
  }

  /** Returns the webhook; the provider accepts only addresses at least as secure as its own protocol. */
  #webhook() {
    const { apiUrl, webhookSecrets } = this.#settings;
    const isTaken = this.#webUrl.startsWith('https:') || apiUrl.startsWith('http:');
    if (webhookSecrets === undefined || !isTaken) return {};
    return {
      webhook: `${this.#webUrl}/api/webhooks/video`,
      webhook_events_filter: ['completed'],
    };
  }

  async #call(path: string, { signal, ...call }: Call) {
    if (this.#settings.apiToken === undefined) {
      throw new VideoProviderError('The video provider is not configured');
    }
    try {
      const { body, status } = await boundedRequest({
        ...call,
        url: `${this.#settings.apiUrl}${path}`,
        accept: 'application/json',
        headers: this.#authorization(),
        maxBytes: MAX_ANSWER_BYTES,
        signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]),
      });
      return { status, answer: tryParseJson(body ? await textOf(body) : '') };
    } catch (cause) {
      throw new VideoProviderError('The video provider does not answer', { cause });
    }
  }
}

interface Call {
  readonly signal: AbortSignal;
  readonly body?: object;
  readonly onConnected?: () => void;
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

const invalid = (status: number): VideoProviderError =>
  new VideoProviderError(`The video provider sent no valid answer (status ${status})`);

async function* nothing(): AsyncGenerator<Buffer, void> {}
