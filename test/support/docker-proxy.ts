import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A loopback address that leads to a Docker daemon, and can be cut off from it. */
export interface DockerProxy {
  /** As in `DOCKER_HOST`. */
  readonly host: string;
  /** Ends every connection, and refuses new ones until it is mended. */
  cut(): void;
  /** Lets nothing through any more, without a word: connections stay, and new ones are taken. */
  silence(): void;
  mend(): void;
  close(): Promise<void>;
}

/** @param dockerHost as in `DOCKER_HOST`. */
export async function startDockerProxy(
  dockerHost = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock',
): Promise<DockerProxy> {
  const address = new URL(dockerHost);
  const target =
    address.protocol === 'unix:'
      ? { path: address.pathname }
      : { host: address.hostname, port: Number(address.port) };
  const sockets = new Set<Socket>();
  let state: 'open' | 'cut' | 'silent' = 'open';
  const server = createServer((near) => {
    if (state === 'cut') return near.destroy();
    const far = connect(target);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('data', (chunk) => state === 'open' && other.write(chunk));
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    return undefined;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, // TCP: never a string
    cut() {
      state = 'cut';
      endAll();
    },
    silence() {
      state = 'silent';
    },
    mend() {
      state = 'open';
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      endAll();
      await closed;
    },
  };
}
