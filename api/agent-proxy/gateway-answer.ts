import type { Writable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { PacedWriter, type BytePace } from '../../src/lib/byte-pace.js';
import { headersForClient, type AnswerHeaders } from './proxy-headers.js';

/** The first status of an answer; those below precede the answer and are not passed on. */
const FIRST_STATUS = 200;

/** The client's end of an answer. */
export interface ClientEnd<S extends Writable> {
  readonly sink: S;
  readonly pace: BytePace;
  /** Answers the client in place of the gateway. */
  readonly refuse: (error: unknown) => void;
}

/** A gateway's answer on its way to the client of an agent's address. */
export abstract class GatewayAnswer<S extends Writable> implements Dispatcher.DispatchHandler {
  readonly #end: ClientEnd<S>;
  /** Undefined before the request is sent, and after its answer. */
  #controller: Dispatcher.DispatchController | undefined;
  #writer: PacedWriter | undefined;
  #hasBegun = false;

  constructor(end: ClientEnd<S>) {
    this.#end = end;
  }

  /** Writes the head of the answer to the client. */
  protected abstract begin(
    sink: S,
    status: number,
    headers: string[],
    message: string | undefined,
  ): void;

  /** Ends the request at the gateway, unless its answer is complete. */
  abort(): void {
    this.#controller?.abort(new Error('The client of an agent left'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { pace, sink } = this.#end;
    this.#controller = controller;
    if (sink.destroyed) return this.abort();
    this.#writer = new PacedWriter(controller, sink, pace);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
    message?: string,
  ): void {
    if (status < FIRST_STATUS) return;
    this.#hasBegun = true;
    this.begin(this.#end.sink, status, headersForClient(headers), message);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#writer?.write(piece);
  }

  onResponseEnd(): void {
    this.leaveGateway();
    this.#end.sink.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { refuse, sink } = this.#end;
    this.leaveGateway();
    if (sink.destroyed) return;
    // A second head would become part of the body.
    if (this.#hasBegun) sink.destroy();
    else refuse(error);
  }

  /** Marks the request as over: a client that leaves later ends nothing at the gateway. */
  protected leaveGateway(): void {
    this.#controller = undefined;
  }
}
