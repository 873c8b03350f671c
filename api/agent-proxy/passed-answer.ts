import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { PacedWriter, type BytePace } from '../../src/lib/byte-pace.js';
import { headersForClient, type AnswerHeaders } from './proxy-headers.js';

/** The first status of an answer; those below precede the answer and are not passed on. */
const FIRST_STATUS = 200;

/** A gateway's answer on its way to the client of an agent's address. */
export class PassedAnswer implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #pace: BytePace;
  readonly #refuse: (error: unknown) => void;
  /** Undefined before the request is sent, and after its answer. */
  #controller: Dispatcher.DispatchController | undefined;
  #writer: PacedWriter | undefined;

  /** @param refuse answers the client in place of the gateway. */
  constructor(response: ServerResponse, pace: BytePace, refuse: (error: unknown) => void) {
    this.#response = response;
    this.#pace = pace;
    this.#refuse = refuse;
  }

  /** Ends the request at the gateway, unless its answer is complete. */
  abort(): void {
    this.#controller?.abort(new Error('The client of an agent left'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#response.destroyed) return this.abort();
    this.#writer = new PacedWriter(controller, this.#response, this.#pace);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
    statusMessage?: string,
  ): void {
    if (status < FIRST_STATUS) return;
    this.#response.writeHead(status, statusMessage, headersForClient(headers));
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#writer?.write(piece);
  }

  onResponseEnd(): void {
    this.#controller = undefined;
    this.#response.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#controller = undefined;
    if (this.#response.destroyed) return;
    if (this.#response.headersSent) return void this.#response.destroy();
    this.#refuse(error);
  }
}
