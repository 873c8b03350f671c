import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/** A request that the provider received. */
export interface ProviderRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly text: string;
  readonly body: ReturnType<typeof JSON.parse>;
}

type Behaviour = (request: ProviderRequest, response: ServerResponse) => void | Promise<void>;

/** An OpenAI-compatible provider on loopback that stands in for the real service. */
export interface ProviderStub {
  /** Base URL up to and including `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly requests: ProviderRequest[];
  /** Sets how the next requests are answered; without an argument, restores the default. */
  behave(behaviour?: Behaviour): void;
  close(): Promise<void>;
}

/** Starts a provider that answers `said: <last message>` until `behave` changes that. */
export async function startProvider(): Promise<ProviderStub> {
  const requests: ProviderRequest[] = [];
  let behaviour: Behaviour = sayBack;
  const server = createServer((incoming, response) => {
    void read(incoming).then((request) => {
      requests.push(request);
      return behaviour(request, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // never a string for a TCP listener
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    apiKey: 'sk-provider-key-of-this-test',
    requests,
    behave: (next = sayBack) => (behaviour = next),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export function completion(content: string, model = 'stub'): Record<string, unknown> {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  };
}

/** Streams an answer in these pieces, as models do for OpenClaw. */
export function streamCompletion(
  response: ServerResponse,
  deltas: readonly object[],
  finish = 'stop',
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'auto' };
  const send = (delta: object, finish_reason: string | null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    response.write(`data: ${JSON.stringify({ ...base, choices })}\n\n`);
  };
  for (const delta of deltas) send(delta, null);
  send({}, finish);
  response.end('data: [DONE]\n\n');
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sayBack({ body }: ProviderRequest, response: ServerResponse): void {
  if (body === undefined) return sendJson(response, 404, { error: { message: 'not here' } });
  sendJson(response, 200, completion(`said: ${body.messages.at(-1).content}`, body.model));
}

async function read(incoming: IncomingMessage): Promise<ProviderRequest> {
  let text = '';
  incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  await once(incoming, 'end');
  return {
    path: incoming.url ?? '',
    authorization: incoming.headers.authorization,
    text,
    body: text === '' ? undefined : JSON.parse(text),
  };
}
