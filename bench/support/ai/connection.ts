import net from 'node:net';

const TIMEOUT_MS = 30_000;
const END_OF_HEAD = '\r\n\r\n';
const LAST_CHUNK = '\r\n0\r\n\r\n';
/** Matches a chunk of an answer that has text; the first chunk often has none. */
const CONTENT = /"content":\s*"[^"]/;

/** One answer; times are those of `performance.now()`. */
export interface Timed {
  readonly status: number;
  readonly body: string;
  /** Time of the first text; undefined if the answer has none. */
  readonly firstContentAt: number | undefined;
  readonly endedAt: number;
}

interface Asked {
  resolve(answer: Timed): void;
  reject(error: Error): void;
}

/**
 * A keep-alive HTTP/1.1 connection for one request at a time. It parses as little of an answer as
 * possible: with Node's own client, the load would use more CPU than the measured server.
 */
export class BareConnection {
  readonly #socket: net.Socket;
  #asked: Asked | undefined;
  #text = '';
  #firstContentAt: number | undefined;

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding('latin1'); // one character is one byte, as in content lengths
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('no answer within 30 s')));
    socket.on('data', (piece) => this.#read(String(piece)));
    socket.on('error', (error) => this.#asked?.reject(error));
    socket.on('close', () => this.#asked?.reject(new Error('the connection was closed')));
  }

  static open(host: string, port: number): Promise<BareConnection> {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host, port });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new BareConnection(socket)));
    });
  }

  get closed(): boolean {
    return this.#socket.destroyed || this.#socket.readyState !== 'open';
  }

  /**
   * Sends a request and returns its answer.
   *
   * @param request head and body, in ASCII.
   */
  ask(request: string): Promise<Timed> {
    if (this.closed) return Promise.reject(new Error('the connection was closed'));
    return new Promise((resolve, reject) => {
      this.#asked = { resolve, reject };
      this.#socket.write(request, 'latin1');
    });
  }

  close(): void {
    this.#asked = undefined;
    this.#socket.destroy();
  }

  #read(piece: string): void {
    this.#text += piece;
    const headEnd = this.#text.indexOf(END_OF_HEAD);
    if (headEnd < 0) return;
    if (CONTENT.test(this.#text)) this.#firstContentAt ??= performance.now();
    if (!isWhole(this.#text, headEnd)) return;
    const answer = {
      status: Number(this.#text.slice(9, 12)), // `HTTP/1.1 200`
      body: this.#text.slice(headEnd + END_OF_HEAD.length),
      firstContentAt: this.#firstContentAt,
      endedAt: performance.now(),
    };
    const asked = this.#asked;
    this.#asked = undefined;
    this.#text = '';
    this.#firstContentAt = undefined;
    asked?.resolve(answer);
  }
}

function isWhole(text: string, headEnd: number): boolean {
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  if (length === undefined) return text.endsWith(LAST_CHUNK);
  return text.length >= headEnd + END_OF_HEAD.length + Number(length);
}
