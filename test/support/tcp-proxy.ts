import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Added to everything that passes a slow proxy, in each direction. */
const SLOW_MS = 400;

/** An address that leads to a server, and what can happen to the network on the way there. */
export interface TcpProxy {
  /** `tcp://host:port`, as in `DOCKER_HOST`. */
  readonly host: string;
  readonly port: number;
  /** Ends every connection, and new ones at once, until it is mended. */
  cut(): void;
  /** Ends every connection, and lets nobody listen until it is mended. */
  refuse(): void;
  /** Lets nothing through, without a word: connections stay, and new ones are taken. */
  silence(): void;
  /** Lets everything through late. */
  slow(): void;
  /** What was held back by a silence gets through now, as after a cable was put back. */
  mend(): void;
  close(): Promise<void>;
}

type State = 'open' | 'cut' | 'refused' | 'silent' | 'slow';

/**
 * @param target as in `DOCKER_HOST`: `unix:///path` or `tcp://host:port`.
 * @param address where it listens itself.
 */
export async function startTcpProxy(target: string, address = '127.0.0.1'): Promise<TcpProxy> {
  const { hostname, pathname, port: targetPort, protocol } = new URL(target);
  const far =
    protocol === 'unix:' ? { path: pathname } : { host: hostname, port: Number(targetPort) };
  const sockets = new Set<Socket>();
  let state: State = 'open';
  let server: Server;

  const pipe = (from: Socket, to: Socket) => {
    sockets.add(from);
    if (state === 'silent') from.pause();
    let held = 0;
    let written = Promise.resolve();
    from.on('data', (chunk) => {
      if (state !== 'slow' && held === 0) return void to.write(chunk);
      const due = performance.now() + (state === 'slow' ? SLOW_MS : 0);
      held++;
      written = written.then(async () => {
        await delay(due - performance.now());
        held--;
        if (!to.destroyed) to.write(chunk);
      });
      return undefined;
    });
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const listen = (port: number) =>
    createServer((near) => {
      if (state === 'cut') return near.destroy();
      const other = connect(far);
      pipe(near, other);
      pipe(other, near);
      return undefined;
    }).listen(port, address);
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const enter = (next: State) => {
    if (state === 'refused' && next !== 'refused') server = listen(port);
    state = next;
    for (const socket of sockets) {
      if (next === 'silent') socket.pause();
      else socket.resume();
    }
  };

  server = listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // TCP: never a string
  return {
    host: `tcp://${address}:${port}`,
    port,
    cut() {
      enter('cut');
      endAll();
    },
    refuse() {
      enter('refused');
      server.close();
      endAll();
    },
    silence: () => enter('silent'),
    slow: () => enter('slow'),
    mend: () => enter('open'),
    async close() {
      const closed = server.listening ? once(server, 'close') : Promise.resolve();
      server.close();
      endAll();
      await closed;
    },
  };
}
