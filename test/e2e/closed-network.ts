import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { projectRoot } from '../../dev/root.js';

const run = promisify(execFile);

/** A machine without IPv6 has no IPv6 in its network namespaces either. */
const hasIpv6 = networkInterfaces().lo?.some(({ family }) => family === 'IPv6') ?? false;

/** A network namespace without outside links, in which this machine has the given addresses. */
export class ClosedNetwork {
  readonly #name = `closed-${randomUUID().slice(0, 8)}`;
  readonly #programs: ChildProcess[] = [];

  private constructor(readonly addresses: readonly string[]) {}

  static async make(addresses: readonly string[]): Promise<ClosedNetwork> {
    const network = new ClosedNetwork(addresses.filter((each) => hasIpv6 || !each.includes(':')));
    await run('ip', ['netns', 'add', network.#name]);
    try {
      await run('ip', ['-n', network.#name, 'link', 'set', 'lo', 'up']);
      for (const address of network.addresses) {
        const bits = address.includes(':') ? 128 : 32;
        const place = [`${address}/${bits}`, 'dev', 'lo'];
        await run('ip', ['-n', network.#name, 'address', 'add', ...place]);
        await network.#filter(address, ['-A', 'OUTPUT', '-d', address]);
      }
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  /**
   * Starts a Node program in the network and waits until it prints a text.
   *
   * @throws if the program ends before.
   */
  async serve(
    program: string,
    env: Readonly<Record<string, string>>,
    ready: string,
  ): Promise<void> {
    const child = this.#start(program, env);
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.once('close', () => reject(new Error(`${program} ended:\n${output}`)));
      child.stdout?.on('data', (piece: Buffer) => {
        output += piece.toString();
        if (output.includes(ready)) resolve();
      });
    });
  }

  #start(program: string, env: Readonly<Record<string, string>> = {}): ChildProcess {
    const child = spawn('ip', ['netns', 'exec', this.#name, process.execPath, program], {
      cwd: projectRoot,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#programs.push(child);
    return child;
  }

  /**
   * Runs a Node program in the network.
   *
   * @returns the program's output for the input.
   * @throws if the program fails.
   */
  async evaluate<T>(program: string, input: unknown): Promise<T> {
    const child = this.#start(program);
    const ended = once(child, 'close');
    child.stdin?.end(JSON.stringify(input));
    const [printed] = await Promise.all([child.stdout && text(child.stdout), ended]);
    if (child.exitCode !== 0) throw new Error(`${program} ended with ${child.exitCode}`);
    return JSON.parse(printed ?? '') as T; // each program prints a single type
  }

  /** Returns the number of packets sent to each address. */
  async packets(): Promise<Readonly<Record<string, number>>> {
    const sent: Record<string, number> = {};
    for (const address of this.addresses) {
      const { stdout } = await this.#filter(address, ['-nvxL', 'OUTPUT']);
      const line = stdout.split('\n').find((each) => each.split(/\s+/).includes(address));
      sent[address] = Number(line?.trim().split(/\s+/)[0]);
    }
    return sent;
  }

  async close(): Promise<void> {
    for (const child of this.#programs) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }
    await run('ip', ['netns', 'delete', this.#name]);
  }

  #filter(address: string, args: readonly string[]) {
    const program = address.includes(':') ? 'ip6tables' : 'iptables';
    return run('ip', ['netns', 'exec', this.#name, program, '-w', ...args]);
  }
}
