import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { endChild, forkUntilMessage } from './child.js';
import type { QuietAgent, QuietHostCounts, QuietHostOrder } from './quiet-host.js';
import { within } from './within.js';

const ANSWER_MS = 10_000;

/** The parent's handle of the program `quiet-host`. */
export class QuietHost {
  readonly #child: ChildProcess;
  readonly #installation: string;

  private constructor(
    child: ChildProcess,
    installation: string,
    /** Address in the format of `DOCKER_HOST`. */
    readonly dockerHost: string,
    /** Ports of the gateways. */
    readonly ports: readonly number[],
  ) {
    this.#child = child;
    this.#installation = installation;
  }

  static async start(gateways: number, installation: string): Promise<QuietHost> {
    const { child, message } = await forkUntilMessage<Pick<QuietHost, 'dockerHost' | 'ports'>>(
      'quiet-host',
      [String(gateways)],
    );
    return new QuietHost(child, installation, message.dockerHost, message.ports);
  }

  /** Makes the containers of these agents run. */
  async run(agents: readonly QuietAgent[]): Promise<void> {
    await this.#ask({ installation: this.#installation, agents });
  }

  /** Returns the numbers of requests since the start. */
  async counts(): Promise<QuietHostCounts> {
    return (await this.#ask('count')) as QuietHostCounts; // the answer to this order
  }

  stop(): Promise<void> {
    return endChild('quiet-host', this.#child);
  }

  async #ask(order: QuietHostOrder | 'count'): Promise<unknown> {
    const answer = once(this.#child, 'message');
    this.#child.send(order);
    const name = order === 'count' ? 'the counts of quiet-host' : 'quiet-host to know its agents';
    const [message] = (await within(name, ANSWER_MS, answer)) as unknown[]; // the arguments of the event
    return message;
  }
}
