import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TooManyRequestsError } from '../../src/lib/errors.js';

/** Seconds after which a stopped or busy agent may answer. */
const RETRY_AFTER_S = 5;

/** A plain page that an agent's address answers in place of the agent. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  private constructor(
    readonly status: number,
    message: string,
    readonly retryAfterS?: number,
  ) {
    super(message);
  }

  static malformed = (): Refusal =>
    new Refusal(400, 'The request is ambiguous: send one Host header, and a path.');

  static foreign = (): Refusal =>
    new Refusal(403, 'Only pages of this agent may open a WebSocket here.');

  static stale = (): Refusal =>
    new Refusal(403, 'This link has expired: open the agent from the dashboard again.');

  static hidden = (): Refusal => new Refusal(404, 'Nothing is here.');

  static unknown = (): Refusal => new Refusal(404, 'No agent has this address.');

  static tooMany = ({ limit, message }: TooManyRequestsError): Refusal =>
    new Refusal(429, message, limit.resetS);

  static unreachable = (): Refusal =>
    new Refusal(502, 'The agent cannot be reached: try again in a moment.');

  static stopped = (): Refusal =>
    new Refusal(503, 'The agent does not run: start it on the dashboard.', RETRY_AFTER_S);

  static busy = (): Refusal =>
    new Refusal(503, 'The agent has too many connections: try again.', RETRY_AFTER_S);

  answer(response: ServerResponse): void {
    response.writeHead(this.status, this.#headers());
    response.end(this.#page());
  }

  /** Answers a request whose connection was to be upgraded, and closes the connection. */
  answerUpgrade(socket: Duplex): void {
    const page = this.#page();
    const lines = Object.entries({ ...this.#headers(), connection: 'close' }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    const head = [`HTTP/1.1 ${this.status} ${STATUS_CODES[this.status] ?? ''}`, ...lines];
    socket.end(`${head.join('\r\n')}\r\n\r\n${page}`);
  }

  #page(): string {
    return `${this.message}\n`;
  }

  #headers(): Record<string, string> {
    return {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': String(Buffer.byteLength(this.#page())),
      'content-security-policy': "default-src 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      ...(this.retryAfterS !== undefined && { 'retry-after': String(this.retryAfterS) }),
    };
  }
}
