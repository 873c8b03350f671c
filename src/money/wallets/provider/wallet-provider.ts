import type { Hex } from 'viem';
import * as z from 'zod';
import { ServiceError } from '../../../lib/errors.js';
import { boundedRequest, textOf } from '../../../platform/http/strict-call.js';
import { tryParseJson } from '../../../lib/json.js';
import { parseAddress } from '../../chain/address.js';
import type { WalletProviderSettings } from './settings.js';

/** Milliseconds for one request and its response. */
const CALL_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/** An account at the provider with its addresses; the first address is the wallet. */
const endUser = z.object({
  userId: z.string(),
  evmAccountObjects: z.array(z.object({ address: z.string() })).min(1),
});

/** 500: the wallet provider failed or sent an invalid response; `details` says how. */
export class WalletProviderError extends ServiceError {
  override readonly name = 'WalletProviderError';

  constructor(details: string, options?: ErrorOptions) {
    super(500, 'Failed to create wallet', undefined, { details }, options);
  }
}

export type WalletProviderState = 'off' | 'incomplete' | 'on';

export class WalletProvider {
  readonly #settings: WalletProviderSettings;

  constructor(settings: WalletProviderSettings) {
    this.#settings = settings;
  }

  get state(): WalletProviderState {
    const { apiKey, apiUrl } = this.#settings;
    if (apiKey === undefined && apiUrl === undefined) return 'off';
    return apiKey === undefined || apiUrl === undefined ? 'incomplete' : 'on';
  }

  /** Returns the name of the platform at the wallet provider. */
  get projectId(): string {
    return this.#settings.projectId;
  }

  /**
   * Creates a user's wallet at the provider, or finds the wallet that an earlier request created under this id.
   *
   * @returns the address in lower case. @throws WalletProviderError
   */
  async create(walletId: string, email: string): Promise<Hex> {
    const made = await this.#request('/v2/end-users', {
      userId: walletId,
      authenticationMethods: [{ type: 'email', email }],
      evmAccount: { createSmartAccount: false },
    });
    const { status, body } =
      made.status === 409
        ? await this.#request(`/v2/end-users/${encodeURIComponent(walletId)}`)
        : made;
    if (status !== 200 && status !== 201) {
      throw new WalletProviderError(`The wallet provider answered ${status}`);
    }
    const answer = endUser.safeParse(body);
    const [account] = answer.data?.evmAccountObjects ?? [];
    const address = account && parseAddress(account.address);
    if (address === undefined || answer.data?.userId !== walletId) {
      throw new WalletProviderError('The wallet provider sent a response of unknown format');
    }
    return address;
  }

  /** Sends a request; the returned `body` is undefined if it is not JSON. */
  async #request(path: string, body?: object): Promise<{ status: number; body: unknown }> {
    const { apiKey = '', apiUrl = '' } = this.#settings;
    try {
      const answer = await boundedRequest({
        url: `${apiUrl.replace(/\/$/, '')}${path}`,
        headers: { authorization: `Bearer ${apiKey}` },
        ...(body && { body }),
        accept: 'application/json',
        maxBytes: MAX_ANSWER_BYTES,
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      const text = answer.body && (await textOf(answer.body));
      return { status: answer.status, body: tryParseJson(text ?? '') };
    } catch (cause) {
      throw new WalletProviderError('The wallet provider did not answer', { cause });
    }
  }
}
