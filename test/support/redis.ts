import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { poll } from '../../dev/poll.js';
import { freePort } from '../../dev/ports.js';

const REDIS_SERVER = process.env.TEST_REDIS_SERVER ?? '/usr/bin/redis-server';
const START_TIMEOUT_MS = 10_000;

/** A Redis server without a file, on a port that it keeps over restarts. */
export class TestRedis {
  #server: ChildProcess | undefined;

  private constructor(private readonly port: number) {}

  static async start(): Promise<TestRedis> {
    const redis = new TestRedis(await freePort());
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    if (!existsSync(REDIS_SERVER)) throw new Error(`${REDIS_SERVER} is missing: install redis`);
    const place = ['--port', String(this.port), '--bind', '127.0.0.1'];
    this.#server = spawn(REDIS_SERVER, [...place, '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
    });
    const answers = await poll(() => this.#answers(), { timeoutMs: START_TIMEOUT_MS });
    if (answers !== true) throw new Error('Redis did not start');
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const ended = once(server, 'exit');
    server.kill();
    await ended;
  }

  #answers(): Promise<true | undefined> {
    return new Promise((resolve) => {
      const socket = connect(this.port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(undefined));
    });
  }
}
