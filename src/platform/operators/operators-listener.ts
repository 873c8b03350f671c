import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { BlockList, isIPv6, type AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { addNetwork } from '../../lib/add-network.js';
import { MisdirectedRequestError } from '../../lib/errors.js';
import { inUrl, isOwnHost } from '../http/own-hosts.js';
import type { MetricsSource } from './metrics-source.js';
import type { Readiness } from './readiness.js';

const MAX_CONNECTIONS = 64;

/** Milliseconds for a request to arrive. */
const REQUEST_MS = 10_000;

export interface OperatorsListenerParts {
  readonly host: string;
  readonly port: number;
  /** The variable that sets the address. */
  readonly variable: string;
  /** Accepted names in `Host`. */
  readonly names: ReadonlySet<string>;
  /** Networks (CIDR) whose connections are dropped without an answer, such as those of agents. */
  readonly refuseFrom?: readonly string[];
  readonly metrics: MetricsSource;
  readonly readiness: Pick<Readiness, 'read'>;
  readonly log: Logger;
}

export interface OperatorsListening {
  /** Undefined if the address could not be bound. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

/**
 * Serves `/metrics`, `/livez` and `/readyz` of a process to operators, on an address of its own because it
 * needs no authentication. An address in use is logged, and the process continues without this listener.
 */
export async function serveOperators(parts: OperatorsListenerParts): Promise<OperatorsListening> {
  const { host, log, port, variable } = parts;
  const refused = new BlockList();
  for (const network of parts.refuseFrom ?? []) addNetwork(refused, network);
  const server = http.createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS },
    (request, response) => void answer(parts, request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.unref(); // a process that has failed ends
  server.on('connection', (socket) => {
    const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
    if (refused.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) socket.destroy();
  });
  const failure = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once('error', resolve);
    server.listen(port, host, () => resolve(undefined));
  });
  server.removeAllListeners('error');
  if (failure) {
    const reason = failure.code ?? failure.message;
    log.warn(
      { address: `${host}:${port}`, reason },
      `no metrics and no probes: set ${variable} to a free address`,
    );
    return { url: undefined, close: () => Promise.resolve() };
  }
  server.on('error', (error) => log.error({ err: error }, "the operators' listener failed"));
  const bound = server.address() as AddressInfo; // never a path for a TCP listener
  return {
    url: `http://${inUrl(bound.address)}:${bound.port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

async function answer(
  parts: OperatorsListenerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, type, body } = await find(parts, request).catch((error: unknown) => {
    parts.log.error({ err: error }, "an operator's request failed");
    return json(500, { error: 'Internal server error' });
  });
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function find(
  { metrics, names, readiness }: OperatorsListenerParts,
  request: IncomingMessage,
): Promise<Answer> {
  if (!isOwnHost(request, names))
    return json(421, { error: new MisdirectedRequestError().message });
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return json(405, { error: 'Method not allowed' });
  }
  switch (request.url?.split('?', 1)[0]) {
    case '/livez':
      return json(200, { live: true });
    case '/readyz': {
      const report = await readiness.read();
      return json(report.ready ? 200 : 503, report);
    }
    case '/metrics':
      return { status: 200, type: metrics.contentType, body: await metrics.read() };
    default:
      return json(404, { error: 'Not found' });
  }
}

const json = (status: number, body: unknown): Answer => ({
  status,
  type: 'application/json; charset=utf-8',
  body: JSON.stringify(body),
});
