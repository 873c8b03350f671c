import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A fake gateway that sends its answers in order and repeats the last. */
export class ScriptedGateway {
  answers: number[] = [200];
  readonly #server = createServer((_, response) => {
    const status = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    response.writeHead(status ?? 200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // it listens on TCP
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** A fake container of an agent that has just ended. */
export class ScriptedContainer {
  id = 'container';
  status = 'exited';
  exitCode = 137;
  oomKilled = false;
  startedAt = Date.now() - 3_600_000;
  finishedAt = Date.now() - 1_000;
  /** Steps done to the container, with their times. */
  readonly steps: { readonly step: string; readonly at: number }[] = [];
  /** Effect of a kill or a start; by default the container ends or runs. */
  onKill: () => void = () => undefined;
  onStart: () => void = () => undefined;
  readonly #gateway: ScriptedGateway;

  constructor(gateway: ScriptedGateway) {
    this.#gateway = gateway;
  }

  /** Returns the steps without their times. */
  get did(): string[] {
    return this.steps.map(({ step }) => step);
  }

  inspect() {
    const { exitCode, id, oomKilled, status } = this;
    const startedAt = new Date(this.startedAt).toISOString();
    const finishedAt = new Date(this.finishedAt).toISOString();
    const { port } = this.#gateway;
    return Promise.resolve({ id, status, oomKilled, port, startedAt, finishedAt, exitCode });
  }

  async kill(): Promise<void> {
    this.steps.push({ step: 'kill', at: Date.now() });
    this.onKill();
    if (this.status === 'running') this.end();
    await Promise.resolve();
  }

  async start(): Promise<void> {
    this.steps.push({ step: 'start', at: Date.now() });
    this.startedAt = Date.now();
    this.status = 'running';
    this.onStart();
    await Promise.resolve();
  }

  end(): void {
    this.status = 'exited';
    this.finishedAt = Date.now();
  }
}
