import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { StringDecoder } from 'node:string_decoder';

/** Git's own HTTP server for repositories. */
export interface GitRemote {
  readonly address: string;
  readonly port: number;
  /** Received requests: first line and `Authorization` header. */
  readonly asked: { readonly line: string; readonly authorization: string | undefined }[];
  /** A handler that replaces git while it is set. */
  instead: RequestListener | undefined;
  /** A hook that is awaited before each answer. */
  before: () => Promise<unknown>;
  close(): Promise<void>;
}

/**
 * Starts git's HTTP server.
 *
 * @param folder with the bare repositories.
 * @param address to listen on.
 * @param secure certificate and key for HTTPS.
 */
export async function gitRemote(
  folder: string,
  address = '127.0.0.1',
  secure?: https.ServerOptions,
): Promise<GitRemote> {
  const handle: RequestListener = (request, response) => {
    const { headers, method, url = '' } = request;
    remote.asked.push({ line: `${method} ${url}`, authorization: headers.authorization });
    if (remote.instead) remote.instead(request, response);
    else void remote.before().then(() => byGit(folder, request, response));
  };
  const server = secure ? https.createServer(secure, handle) : http.createServer(handle);
  await once(server.listen(0, address), 'listening');
  const { port } = server.address() as AddressInfo; // a TCP listener: never a string
  const remote: GitRemote = {
    address,
    port,
    asked: [],
    instead: undefined,
    before: () => Promise.resolve(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return remote;
}

/** Answers with `git http-backend` by the CGI protocol. */
function byGit(folder: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://remote.test');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      LC_ALL: 'C',
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      REMOTE_USER: 'somebody',
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'],
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  request.pipe(child.stdin);
  child.stdin.on('error', () => undefined); // git may answer before it has read the whole body
  const decoder = new StringDecoder('latin1');
  let head = '';
  child.stdout.on('data', function read(piece: Buffer) {
    head += decoder.write(piece);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    child.stdout.off('data', read);
    const headers = Object.fromEntries(
      head
        .slice(0, end)
        .split('\r\n')
        .map((line) => line.split(': ', 2)),
    );
    response.writeHead(Number.parseInt(headers.Status ?? '200', 10), headers);
    response.write(Buffer.from(head.slice(end + 4), 'latin1'));
    child.stdout.pipe(response);
  });
}
