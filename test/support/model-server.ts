import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { completion, sendJson } from './provider-stub.js';

/** A server of local models in OpenAI's form, as Ollama is. */
export interface ModelServer {
  /** Base URL up to and including `/v1`. */
  readonly baseUrl: string;
  /** Requests for the list, with their headers. */
  readonly listed: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** The names of the models that chats requested. */
  readonly asked: string[];
  /** Sets the entries of the list, or how a request for it is answered. */
  list(entries: readonly object[] | ((response: ServerResponse) => void)): void;
  /** Sets the answers of Ollama's own API by path, or by path and model. */
  details(answers: Readonly<Record<string, object>>): void;
  /** Delays the answers to chats. */
  slow(ms: number): void;
  close(): Promise<void>;
}

/** Starts a server that answers chats with its models, and refuses other models as unknown. */
export async function startModelServer(...names: string[]): Promise<ModelServer> {
  const listed: ModelServer['listed'] = [];
  const asked: string[] = [];
  let answer: (response: ServerResponse) => void = () => undefined;
  let known: readonly string[] = [];
  const list: ModelServer['list'] = (entries) => {
    if (typeof entries === 'function') answer = entries;
    else {
      known = entries.flatMap((entry) => ('id' in entry ? String(entry.id) : []));
      answer = (response) => sendJson(response, 200, { object: 'list', data: entries });
    }
  };
  let delayMs = 0;
  let details: Readonly<Record<string, object>> = {};
  list(names.map((id) => ({ id, object: 'model', created: 1, owned_by: 'library' })));
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { headers, method, url: path = '' } = request;
      if (path.startsWith('/api/')) {
        const name = method === 'GET' ? path : `${path} ${JSON.parse(body).model}`;
        return sendJson(response, details[name] ? 200 : 404, details[name] ?? {});
      }
      if (method === 'GET') {
        listed.push({ path, headers });
        return answer(response);
      }
      const { messages, model } = JSON.parse(body);
      asked.push(model);
      if (!known.some((name) => name === model || name === `${model}:latest`)) {
        const error = { message: `model "${model}" not found`, code: 'model_not_found' };
        return sendJson(response, 404, { error });
      }
      const answered = completion(`said: ${messages.at(-1).content}`, model);
      setTimeout(() => sendJson(response, 200, answered), delayMs);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP address is never a string
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    listed,
    asked,
    list,
    details: (answers) => (details = answers),
    slow: (ms) => (delayMs = ms),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
