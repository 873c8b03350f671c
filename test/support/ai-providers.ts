import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ProviderName } from '../../src/ai/completion/provider-names.js';
import { completion, sendJson } from './provider-stub.js';

/** A request that a provider received. */
export interface AiRequest {
  readonly provider: ProviderName;
  /** The provider's name for the model. */
  readonly model: string;
  readonly streams: boolean;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ReturnType<typeof JSON.parse>;
}

export type AiBehaviour = (request: AiRequest, response: ServerResponse) => void | Promise<void>;

/** All AI providers on loopback, each at its own address and in its own wire format. */
export interface AiProviders {
  /** Returns the environment that configures all providers, or only the named ones. */
  env(...names: ProviderName[]): Record<string, string>;
  readonly requests: AiRequest[];
  /** Keys that are accepted by the endpoints for a provider's models and its key. */
  readonly accepted: Set<string>;
  /** Lists the requests since the last call as `<provider>/<model>`. */
  asked(): string[];
  /** Sets the behaviour of one provider for its next requests; without a name, resets all. */
  behave(provider?: ProviderName, behaviour?: AiBehaviour): void;
  close(): Promise<void>;
}

/** Path prefix of each provider. */
const PATHS: Readonly<Record<ProviderName, string>> = {
  openrouter: '/openrouter/api/v1',
  gemini: '/gemini/v1beta',
  groq: '/groq/openai/v1',
  anthropic: '/anthropic/v1',
  openai: '/openai/v1',
  minimax: '/minimax/v1',
};

const NAMES = Object.keys(PATHS) as ProviderName[]; // the record's own keys

export const keyOfProvider = (name: ProviderName): string => `sk-key-of-${name}`;

/** Returns the key of a request, in any provider's header. */
export const keyIn = (headers: IncomingHttpHeaders): string =>
  headers.authorization?.replace('Bearer ', '') ??
  String(headers['x-api-key'] ?? headers['x-goog-api-key']);

/**
 * Starts providers that answer `hello from <provider>`, whole or in two pieces, with a usage of 3 and 2
 * tokens.
 */
export async function startAiProviders(): Promise<AiProviders> {
  const requests: AiRequest[] = [];
  const accepted = new Set<string>();
  const behaviours = new Map<ProviderName, AiBehaviour>();
  let checked = 0;
  const server = createServer((incoming, response) => {
    void text(incoming).then((said) => {
      const { headers, url: path = '' } = incoming;
      const provider = NAMES.find((name) => path.startsWith(PATHS[name]));
      if (provider === undefined) throw new Error(`no provider at ${path}`);
      if (incoming.method === 'GET') {
        return accepted.has(keyIn(headers))
          ? sendJson(response, 200, {})
          : sendJson(response, 401, { error: { message: 'key?' } });
      }
      const body = JSON.parse(said);
      const inPath = /models\/([^:]+):(stream)?/.exec(path);
      const request: AiRequest = {
        provider,
        model: inPath?.[1] ?? body.model,
        streams: inPath ? inPath[2] !== undefined : body.stream === true,
        path,
        headers,
        body,
      };
      requests.push(request);
      return (behaviours.get(provider) ?? sayHello)(request, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // the address of a TCP listener is never a string
  return {
    env: (...names) =>
      Object.fromEntries(
        NAMES.filter((name) => names.length === 0 || names.includes(name)).flatMap((name) => [
          [`${name.toUpperCase()}_BASE_URL`, `http://127.0.0.1:${port}${PATHS[name]}`],
          [`${name.toUpperCase()}_API_KEY`, keyOfProvider(name)],
        ]),
      ),
    requests,
    accepted,
    asked() {
      const since = requests.slice(checked);
      checked = requests.length;
      return since.map(({ provider, model }) => `${provider}/${model}`);
    },
    behave(provider, behaviour) {
      if (provider === undefined) behaviours.clear();
      else behaviours.set(provider, behaviour ?? sayHello);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export const sayHello: AiBehaviour = (request, response) => {
  const { provider, model } = request;
  const content = `hello from ${provider}`;
  if (request.streams) sendEvents(response, streamOf(provider, model, content));
  else sendJson(response, 200, answerOf(provider, model, content));
};

/** Fails in the provider's own format; the message quotes the prompt and the key. */
export const fails =
  (status: number, code?: string | number, headers: Record<string, string> = {}): AiBehaviour =>
  ({ provider, body }, response) => {
    const message = `no: ${JSON.stringify(body)} with ${keyOfProvider(provider)}`;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (provider === 'anthropic') {
      return sendJson(response, status, { type: 'error', error: { type: code, message } });
    }
    if (provider === 'gemini') {
      return sendJson(response, status, { error: { code: status, status: code, message } });
    }
    sendJson(response, status, { error: { message, type: 'error', code } });
  };

/** Never answers, until the client disconnects. */
export const silent: AiBehaviour = async (_request, response) => {
  await once(response, 'close');
};

export function answerOf(provider: ProviderName, model: string, content: string): unknown {
  switch (provider) {
    case 'gemini':
      return {
        candidates: [
          { content: { role: 'model', parts: [{ text: content }] }, finishReason: 'STOP' },
        ],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
        modelVersion: model,
      };
    case 'anthropic':
      return {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model,
        content: [{ type: 'text', text: content }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 3, output_tokens: 2 },
      };
    case 'minimax':
      return { ...completion(content, model), base_resp: { status_code: 0, status_msg: '' } };
    default:
      return completion(content, model);
  }
}

interface StreamEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** Returns a whole stream with the text in two pieces. */
export function streamOf(provider: ProviderName, model: string, content: string): StreamEvent[] {
  const pieces = [content.slice(0, 5), content.slice(5)];
  switch (provider) {
    case 'gemini':
      return pieces.map((text, n) => ({
        data: {
          candidates: [
            {
              content: { role: 'model', parts: [{ text }] },
              ...(n === pieces.length - 1 && { finishReason: 'STOP' }),
            },
          ],
          usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
        },
      }));
    case 'anthropic':
      return anthropicEvents(model, pieces).map((data) => ({ event: data.type, data }));
    default:
      return [
        ...pieces.map((text, n) =>
          chunk(model, { ...(n === 0 && { role: 'assistant' }), content: text }),
        ),
        chunk(model, {}, 'stop'),
        { data: usageChunk(model) },
        { data: '[DONE]' },
      ];
  }
}

function anthropicEvents(model: string, pieces: readonly string[]) {
  const usage = { input_tokens: 3, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], usage };
  return [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...pieces.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ];
}

export function chunk(model: string, delta: object, reason: string | null = null): StreamEvent {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return {
    data: { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices },
  };
}

export const usageChunk = (model: string) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model,
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});

/**
 * Sends events as a stream.
 *
 * @param end false leaves the response open.
 */
export function sendEvents(
  response: ServerResponse,
  events: readonly StreamEvent[],
  end = true,
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const { event, data } of events) {
    if (event !== undefined) response.write(`event: ${event}\n`);
    response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  }
  if (end) response.end();
}
