import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { freePort } from '../../dev/ports.js';
import { obtainIcecast, startIcecast, type RunningIcecast } from '../../dev/radio/icecast.js';
import type { TokenGate } from '../../src/accounts/token-gating/token-gate.js';
import { WALLET_ISSUER } from '../../src/types/sign-in-methods.js';
import { walletSite, type Person, type WalletSite } from '../money/wallets/support.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../support/chain/chain.js';
import { rpcProxy, type RpcProxy } from '../support/chain/rpc-proxy.js';

export const ADMIN_PASSWORD = randomBytes(24).toString('hex');
export const AUTH_SECRET = randomBytes(24).toString('hex');

type PlatformToken = NonNullable<ConstructorParameters<typeof TokenGate>[0]['platformToken']>;

/** Differences of an Icecast from the one that the platform knows. */
export interface IcecastChanges {
  readonly adminPassword?: string;
  /** Most connections. */
  readonly connections?: number;
}

/** Both listeners, a chain with the platform's token, and Debian's Icecast. */
export interface RadioSite extends WalletSite {
  readonly chain: TestChain;
  /** The node of the token, as the platform reaches it. */
  readonly node: RpcProxy;
  /** The platform's token, at the node itself. */
  readonly token: PlatformToken;
  readonly icecastUrl: string;
  /** The Icecast that runs now; a test may replace it. */
  icecast: RunningIcecast;
  startIcecast(changes?: IcecastChanges): Promise<RunningIcecast>;
  /** Creates a user with a linked wallet that holds the token. */
  holder(): Promise<Person>;
  /** Creates a stream, by default of format mp3. */
  stream(owner: Person, body?: object): Promise<Stream>;
}

export interface Stream {
  readonly id: string;
  readonly mount: string;
  readonly password: string;
}

export async function radioSite(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<RadioSite> {
  const program = await obtainIcecast({ manage: true });
  const [chain, port, folder] = await Promise.all([
    testChain(),
    freePort(),
    mkdtemp(path.join(tmpdir(), 'aps-radio-')),
  ]);
  const node = await rpcProxy(chain.rpcUrl);
  const icecastUrl = `http://127.0.0.1:${port}`;
  const site = await walletSite({
    PLATFORM_TOKEN_ADDRESS: PATH_USD,
    PLATFORM_TOKEN_RPC_URL: node.url,
    PLATFORM_TOKEN_CHAIN_ID: String(CHAIN_ID),
    RADIO_ICECAST_URL: icecastUrl,
    RADIO_ADMIN_PASSWORD: ADMIN_PASSWORD,
    RADIO_AUTH_SECRET: AUTH_SECRET,
    ...env,
  });
  const start = ({ adminPassword = ADMIN_PASSWORD, connections }: IcecastChanges = {}) =>
    startIcecast({
      program,
      dir: folder,
      runDir: path.join(folder, 'run'),
      port,
      backendUrl: site.backendUrl,
      adminPassword,
      authSecret: AUTH_SECRET,
      connections,
    });
  const radio: RadioSite = {
    ...site,
    chain,
    node,
    token: { address: PATH_USD, rpcUrl: chain.rpcUrl, chainId: CHAIN_ID, threshold: '1' },
    icecastUrl,
    icecast: await start(),
    startIcecast: start,
    async holder() {
      const person = await site.person();
      const address = privateKeyToAddress(generatePrivateKey()).toLowerCase() as `0x${string}`;
      await chain.pay(address, 2_000_000n);
      await site.database.db.asUser(person.id).transaction((db) =>
        db.Identity.create({
          id: randomUUID(),
          userId: person.id,
          kind: 'wallet',
          issuer: WALLET_ISSUER,
          subject: address,
          label: address,
        }),
      );
      return person;
    },
    async stream(owner, body = { title: 'Night' }) {
      const made = await site.web(owner, 'POST', '/api/radio/streams', { body });
      if (made.status !== 201) throw new Error(`no stream: ${made.text}`);
      const { sourcePassword, stream } = made.body;
      return {
        id: stream.id,
        mount: new URL(stream.listenUrl).pathname,
        password: sourcePassword,
      };
    },
    async close() {
      await radio.icecast.stop();
      await site.close();
      await node.close();
      await chain.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return radio;
}

/** A source's connection to Icecast, by its own protocol. */
export interface TestSource {
  /** First line of the answer. */
  readonly status: string;
  readonly socket: Socket;
  /** Sends bytes of the stream. */
  send(bytes: Buffer): void;
  /** Resolves when Icecast ends the connection. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Connects as a source, and waits for the first line of the answer. */
export async function connectSource(
  icecastUrl: string,
  {
    contentType = 'audio/mpeg',
    mount,
    password,
  }: {
    readonly mount: string;
    readonly password: string;
    readonly contentType?: string;
  },
): Promise<TestSource> {
  const { hostname, port } = new URL(icecastUrl);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await once(socket, 'connect');
  const basic = Buffer.from(`source:${password}`).toString('base64');
  socket.write(
    `SOURCE ${mount} HTTP/1.0\r\nAuthorization: Basic ${basic}\r\nContent-Type: ${contentType}\r\n\r\n`,
  );
  const line = new Promise<string>((resolve) => {
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
      const [first, rest] = received.split('\r\n', 2);
      if (rest !== undefined) resolve(first ?? '');
    });
  });
  const status = await Promise.race([line, ended.then(() => 'closed')]);
  return {
    status,
    socket,
    ended,
    send: (bytes) => void socket.write(bytes),
    close: () => socket.destroy(),
  };
}

/** Sends a steady stream of bytes in place of audio until it is stopped. */
export function feed(source: Pick<TestSource, 'send'>, bytesPerSecond = 16_000): () => void {
  const piece = Buffer.alloc(bytesPerSecond / 10, 0x55);
  source.send(piece);
  const timer = setInterval(() => source.send(piece), 100);
  return () => clearInterval(timer);
}

/** Listens until so many bytes have arrived. @returns the status, the headers and the bytes. */
export function listen(url: string, bytes: number) {
  return new Promise<{ status: number; headers: http.IncomingHttpHeaders; received: Buffer }>(
    (resolve, reject) => {
      const request = http.get(url, { agent: false }, (response) => {
        const pieces: Buffer[] = [];
        const done = () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            received: Buffer.concat(pieces),
          });
          request.destroy();
        };
        response.on('data', (piece: Buffer) => {
          pieces.push(piece);
          if (Buffer.concat(pieces).length >= bytes) done();
        });
        response.on('end', done);
        response.on('error', reject);
      });
      request.on('error', reject);
    },
  );
}

/** Starts a server that accepts connections and never answers. */
export async function silentServer() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.resume();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // never a string for a TCP listener
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
