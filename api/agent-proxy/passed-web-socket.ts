import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { pipePaced } from '../../src/lib/byte-pace.js';
import { GatewayAnswer, type ClientEnd } from './gateway-answer.js';
import { headersForClient, type AnswerHeaders } from './proxy-headers.js';

/** The protocol of a WebSocket's request and answer. */
export const WEB_SOCKET = 'websocket';

const UPGRADE = ['Connection', 'Upgrade', 'Upgrade', WEB_SOCKET] as const;

interface WebSocketClient extends ClientEnd<Duplex> {
  readonly request: IncomingMessage;
  /** Bytes that the client sent after its request. */
  readonly head: Buffer;
  /** Milliseconds without a byte after which the connection ends. */
  readonly idleMs: number;
  readonly noteStatus: (status: number) => void;
}

/** A WebSocket, or an answer without one. */
export class PassedWebSocket extends GatewayAnswer<Duplex> {
  readonly #client: WebSocketClient;

  constructor(client: WebSocketClient) {
    super(client);
    this.#client = client;
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
    gateway: Duplex,
  ): void {
    const { head, idleMs, pace, request, sink: socket } = this.#client;
    this.leaveGateway();
    this.#writeHead(status, [...UPGRADE, ...headersForClient(headers)]);
    if (head.length > 0) gateway.write(head);
    request.socket.setTimeout(idleMs, () => socket.destroy());
    gateway.on('error', () => gateway.destroy());
    gateway.once('close', () => socket.destroy());
    socket.once('close', () => gateway.destroy());
    pipePaced(gateway, socket, pace);
    pipePaced(socket, gateway, pace);
  }

  protected override begin(
    _socket: Duplex,
    status: number,
    headers: readonly string[],
    message: string | undefined,
  ): void {
    this.#writeHead(status, ['Connection', 'close', ...headers], message);
  }

  /** Writes the head of an answer, which Node does not write for an upgraded connection. */
  #writeHead(
    status: number,
    headers: readonly string[],
    message = STATUS_CODES[status] ?? '',
  ): void {
    const lines = [`HTTP/1.1 ${status} ${message}`];
    for (let at = 0; at + 1 < headers.length; at += 2)
      lines.push(`${headers[at]}: ${headers[at + 1]}`);
    this.#client.noteStatus(status);
    this.#client.sink.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  }
}
