import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * Outcome of a request: `deaf` delivers it and drops the response, `lost` drops it, `hung` never answers it, a
 * number is an error code, and a result replaces the node's.
 */
export type Fate = 'passed' | 'deaf' | 'hung' | 'lost' | number | { readonly result: unknown };

/** A proxy before a node that fails requests as a network does. */
export interface RpcProxy {
  readonly url: string;
  /** Decides the fate of each request from its method and JSON body; undefined means `passed`. */
  fate: (method: string, body: string) => Fate | undefined;
  close(): Promise<void>;
}

/** Starts a proxy before the node at this address. */
export async function rpcProxy(nodeUrl: string): Promise<RpcProxy> {
  const proxy: Pick<RpcProxy, 'fate'> = { fate: () => undefined };
  const server = createServer((request, response) => {
    void (async () => {
      const body = await text(request);
      const { id, method } = JSON.parse(body) as { id: number; method: string };
      const fate = proxy.fate(method, body) ?? 'passed';
      if (fate === 'lost') return response.destroy();
      if (fate === 'hung') return undefined;
      if (typeof fate === 'number') {
        const error = { code: fate, message: 'error set by the test' };
        response.setHeader('content-type', 'application/json');
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
      }
      if (typeof fate === 'object') {
        response.setHeader('content-type', 'application/json');
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...fate }));
      }
      const headers = { 'content-type': 'application/json' };
      const answer = await (await fetch(nodeUrl, { method: 'POST', body, headers })).text();
      if (fate === 'deaf') return response.destroy();
      response.setHeader('content-type', 'application/json');
      return response.end(answer);
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}
