import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * What becomes of a question: `deaf` delivers it and hangs up, `lost` hangs up, a number is an error, and a result is
 * told in place of the node's.
 */
export type Fate = 'passed' | 'deaf' | 'lost' | number | { readonly result: unknown };

/** Stands between us and a node, and does to questions what a network does. */
export interface RpcProxy {
  readonly url: string;
  /** Is asked for each question, with all of it in JSON; `passed` when it answers nothing. */
  fate: (method: string, body: string) => Fate | undefined;
  close(): Promise<void>;
}

/** A proxy before the node at this address. */
export async function rpcProxy(nodeUrl: string): Promise<RpcProxy> {
  const proxy: Pick<RpcProxy, 'fate'> = { fate: () => undefined };
  const server = createServer((request, response) => {
    void (async () => {
      const body = await text(request);
      const { id, method } = JSON.parse(body) as { id: number; method: string };
      const fate = proxy.fate(method, body) ?? 'passed';
      if (fate === 'lost') return response.destroy();
      if (typeof fate === 'number') {
        const error = { code: fate, message: 'as the test says' };
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
