import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Delay that a slow proxy adds in each direction. */
const SLOW_MS = 400;

/** A proxy to a server that simulates network failures. */
export interface TcpProxy {
  /** Address as in `DOCKER_HOST`: `tcp://host:port`. */
  readonly host: string;
  readonly port: number;
  /** Closes every connection, and new connections immediately, until `mend`. */
  cut(): void;
  /** Closes every connection and stops listening until `mend`. */
  refuse(): void;
  /** Stops forwarding silently: connections stay open and new ones are accepted. */
  silence(): void;
  /** Delays all traffic. */
  slow(): void;
  /** Restores the connection and delivers the data held back by `silence`. */
  mend(): void;
  close(): Promise<void>;
}

type State = 'open' | 'cut' | 'refused' | 'silent' | 'slow';

/**
 * @param target as in `DOCKER_HOST`: `unix:///path` or `tcp://host:port`.
 * @param address where the proxy listens.
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
  const { port } = server.address() as AddressInfo; // never a string for a TCP listener
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
