import { setTimeout as delay } from 'node:timers/promises';
import { clientAddress } from '../../bench/support/client.js';

/** An interrupted request holds its key for a minute, and a killed process often restarts late. */
const TIMEOUT_MS = 240_000;
const CALL_TIMEOUT_MS = 20_000;
const PAUSE_MS = 250;

/** A careful API client: it repeats the same request until it is accepted. */
export class CarefulClient {
  #calls = 0;

  readonly #baseUrl: string;

  constructor(
    baseUrl: string,
    /** Empty for a client without a key. */
    private readonly apiKey = '',
  ) {
    this.#baseUrl = baseUrl;
  }

  /**
   * @param key identifies the request, so that it is carried out only once.
   * @throws Error if the request is refused, or not accepted in time.
   */
  async ask<T>(method: string, path: string, key: string, body?: object): Promise<T> {
    const deadline = performance.now() + TIMEOUT_MS;
    const answers = new Set<string>();
    for (;;) {
      const { status, text } = await this.once(method, path, key, body);
      if (status >= 200 && status < 300) return JSON.parse(text) as T; // the caller knows the type
      answers.add(`${status} ${text}`);
      const isFinal = status >= 400 && status < 500 && status !== 409 && status !== 429;
      if (isFinal || performance.now() > deadline) {
        throw new Error(`${method} ${path} was not accepted: ${[...answers].join('; ')}`);
      }
      await delay(PAUSE_MS);
    }
  }

  /**
   * Sends the request once.
   * @returns status 0 if there is no answer.
   */
  async once(
    method: string,
    path: string,
    key: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; text: string }> {
    try {
      const response = await fetch(new URL(path, this.#baseUrl), {
        method,
        headers: {
          ...(this.apiKey !== '' && { authorization: `Bearer ${this.apiKey}` }),
          'x-forwarded-for': clientAddress(this.#calls++),
          'idempotency-key': key,
          ...(body && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      return { status: 0, text: String(error) }; // no server, or interrupted
    }
  }
}
