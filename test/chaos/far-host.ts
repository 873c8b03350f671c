import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { OwnEngine } from '../../bench/support/own-engine.js';
import { run } from '../../dev/processes/run.js';
import { builtProgram } from '../../dev/root.js';
import type { SiteHost } from './site.js';

type Order =
  | { readonly what: 'join-network'; readonly link: string; readonly address: string }
  | { readonly what: 'start-engine' | 'kill-engine' | 'worker-pid' }
  | { readonly what: 'start-worker'; readonly env: NodeJS.ProcessEnv }
  | { readonly what: 'probe'; readonly port: number }
  | { readonly what: 'hang-gateway'; readonly agentId: string };

export type HostOrder = Order & { readonly id: number };
export type HostAnswer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly failed: string }
);

/** A Docker host with its worker, in its own network that a virtual cable joins to this one. */
export class FarHost implements SiteHost {
  readonly docker;
  readonly #child: ChildProcess;
  readonly #asked = new Map<number, (given: HostAnswer) => void>();
  #orders = 0;

  private constructor(
    readonly name: string,
    /** The address at which the host reaches services of this network. */
    readonly hubAddress: string,
    /** The engine's address, as in `DOCKER_HOST`. */
    readonly dockerHost: string,
    folder: string,
    child: ChildProcess,
  ) {
    this.docker = new OwnEngine(folder).docker;
    this.#child = child;
    child.on('message', (given: HostAnswer) => this.#asked.get(given.id)?.(given));
    child.once('exit', () => {
      for (const [id, settle] of this.#asked) settle({ id, failed: 'it has ended' });
    });
  }

  /**
   * Starts a host.
   * @param number of the host, which determines its network.
   */
  static async start(name: string, number: number, folder: string): Promise<FarHost> {
    const child = spawn(
      'unshare',
      ['--net', process.execPath, builtProgram('test', 'chaos', 'host-main.js'), folder],
      // Only this program receives a Ctrl-C, and stops the host in order.
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true },
    );
    await once(child, 'spawn');
    const { host: dockerHost } = new OwnEngine(folder);
    const host = new FarHost(name, `100.64.${number}.1`, dockerHost, folder, child);
    await host.#join(number);
    await host.startEngine();
    return host;
  }

  async startEngine(): Promise<void> {
    await this.#ask({ what: 'start-engine' });
  }

  async killEngine(): Promise<void> {
    await this.#ask({ what: 'kill-engine' });
  }

  async startWorker(env: NodeJS.ProcessEnv): Promise<void> {
    await this.#ask({ what: 'start-worker', env });
  }

  /** Returns undefined while the worker is dead. */
  async workerPid(): Promise<number | undefined> {
    return (await this.#ask({ what: 'worker-pid' })) as number | undefined; // the type of its answer
  }

  async isAnswering(port: number): Promise<boolean> {
    return (await this.#ask({ what: 'probe', port })) === true;
  }

  /** Keeps the agent's gateway running without any further answers. */
  async hangGateway(agentId: string): Promise<void> {
    await this.#ask({ what: 'hang-gateway', agentId });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.disconnect();
    await ended;
  }

  /** Connects this network to the child's once the child has entered its own. */
  async #join(number: number): Promise<void> {
    await this.#ask({ what: 'worker-pid' }); // the child listens
    const [here, there] = [`hub${number}`, `host${number}`];
    const ip = (...args: string[]) => run('ip', args, { timeout: 10_000 });
    const netns = String(this.#child.pid);
    await ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', netns);
    await ip('addr', 'add', `${this.hubAddress}/30`, 'dev', here);
    await ip('link', 'set', here, 'up');
    await this.#ask({ what: 'join-network', link: there, address: `100.64.${number}.2/30` });
  }

  #ask(order: Order): Promise<unknown> {
    const id = this.#orders++;
    return new Promise((resolve, reject) => {
      const settle = (given: HostAnswer) => {
        this.#asked.delete(id);
        if ('failed' in given) reject(new Error(`Host ${this.name}: ${given.failed}`));
        else resolve(given.value);
      };
      this.#asked.set(id, settle);
      this.#child.send({ ...order, id }, (error) => {
        if (error) settle({ id, failed: error.message });
      });
    });
  }
}
