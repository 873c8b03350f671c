import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { PacedWriter, pipePaced, type BytePace } from '../../src/lib/byte-pace.js';
import { headersForClient, type AnswerHeaders } from './proxy-headers.js';

/** The protocol of a WebSocket's request and answer. */
export const WEB_SOCKET = 'websocket';

const UPGRADE = ['Connection', 'Upgrade', 'Upgrade', WEB_SOCKET] as const;

/** A request for a WebSocket. */
export interface WebSocketClient {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that the client sent after its request. */
  readonly head: Buffer;
}

interface WebSocketEnds {
  readonly pace: BytePace;
  /** Milliseconds without a byte after which the connection ends. */
  readonly idleMs: number;
  readonly noteStatus: (status: number) => void;
  /** Answers the client in place of the gateway. */
  readonly refuse: (error: unknown) => void;
}

/** A gateway's WebSocket, or its answer without one, on its way to the client of an agent's address. */
export class PassedWebSocket implements Dispatcher.DispatchHandler {
  readonly #client: WebSocketClient;
  readonly #ends: WebSocketEnds;
  #writer: PacedWriter | undefined;

  constructor(client: WebSocketClient, ends: WebSocketEnds) {
    this.#client = client;
    this.#ends = ends;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { socket } = this.#client;
    const abort = () => controller.abort(new Error('The client of an agent left'));
    if (socket.destroyed) return abort();
    socket.once('close', abort);
    this.#writer = new PacedWriter(controller, socket, this.#ends.pace);
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
    gateway: Duplex,
  ): void {
    const { head, request, socket } = this.#client;
    const { idleMs, pace } = this.#ends;
    this.#answer(status, [...UPGRADE, ...headersForClient(headers)]);
    if (head.length > 0) gateway.write(head);
    request.socket.setTimeout(idleMs, () => socket.destroy());
    gateway.on('error', () => gateway.destroy());
    gateway.once('close', () => socket.destroy());
    socket.once('close', () => gateway.destroy());
    pipePaced(gateway, socket, pace);
    pipePaced(socket, gateway, pace);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
    statusMessage?: string,
  ): void {
    this.#answer(status, ['Connection', 'close', ...headersForClient(headers)], statusMessage);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#writer?.write(piece);
  }

  onResponseEnd(): void {
    this.#client.socket.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { socket } = this.#client;
    if (!socket.destroyed) this.#ends.refuse(error);
  }

  /** Writes the head of an answer, which Node does not write for an upgraded connection. */
  #answer(status: number, headers: readonly string[], message = STATUS_CODES[status] ?? ''): void {
    const lines = [`HTTP/1.1 ${status} ${message}`];
    for (let at = 0; at + 1 < headers.length; at += 2)
      lines.push(`${headers[at]}: ${headers[at + 1]}`);
    this.#ends.noteStatus(status);
    this.#client.socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  }
}
