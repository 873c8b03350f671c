import { UnavailableError } from '../lib/errors.js';
import { boundedRequest, textOf } from '../platform/http/strict-call.js';
import { readStats, type Source } from './icecast-stats.js';
import type { IcecastSettings } from './settings.js';

/** Milliseconds for an answer of Icecast. */
const TIMEOUT_MS = 1_500;

/** A hundred sources with long titles have less. */
const MAX_BYTES = 4 * 1024 * 1024;

/** 503: Icecast does not answer, or refuses the platform. */
export class IcecastAwayError extends UnavailableError {
  override readonly name = 'IcecastAwayError';

  constructor(options?: ErrorOptions) {
    super('The radio does not answer: retry later', options);
  }
}

/** The platform's access to Icecast. */
export class Icecast {
  readonly #url: string;
  readonly #authorization: string;

  constructor({ adminPassword, url }: Pick<IcecastSettings, 'adminPassword' | 'url'>) {
    this.#url = url;
    this.#authorization = `Basic ${Buffer.from(`admin:${adminPassword}`).toString('base64')}`;
  }

  /** Lists the connected sources. @throws IcecastAwayError */
  async sources(): Promise<Source[]> {
    const { body, status } = await this.#request('/admin/stats');
    const sources = status === 200 ? readStats(body) : undefined;
    if (sources) return sources;
    throw new IcecastAwayError({ cause: new Error(`Icecast answers with status ${status}`) });
  }

  /** Disconnects the source of a mount; one that is not connected is no error. @throws IcecastAwayError */
  async endSource(mount: string): Promise<void> {
    const { status } = await this.#request(`/admin/killsource?mount=${encodeURIComponent(mount)}`);
    // 400: there is no such source.
    if (status === 200 || status === 400) return;
    throw new IcecastAwayError({ cause: new Error(`Icecast answers with status ${status}`) });
  }

  async #request(path: string): Promise<{ readonly status: number; readonly body: string }> {
    try {
      const { body, status } = await boundedRequest({
        url: `${this.#url}${path}`,
        headers: { authorization: this.#authorization },
        accept: 'text/xml',
        maxBytes: MAX_BYTES,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return { status, body: body ? await textOf(body) : '' };
    } catch (cause) {
      throw new IcecastAwayError({ cause });
    }
  }
}

/** Ends a source, unless Icecast does not answer: then the worker's next observation does. */
export async function endSource(icecast: Pick<Icecast, 'endSource'>, mount: string): Promise<void> {
  try {
    await icecast.endSource(mount);
  } catch (error) {
    if (!(error instanceof IcecastAwayError)) throw error;
  }
}
