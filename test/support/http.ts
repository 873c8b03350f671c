import { EventSourceParserStream } from 'eventsource-parser/stream';

/** Parsed JSON, untyped so that tests read it directly. */
type Json = ReturnType<typeof JSON.parse>;

/** A response that was read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed body if it is JSON. */
  readonly body: Json;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Address of the client as the listener sees it; by default new for each call. */
  readonly from?: string;
  readonly signal?: AbortSignal;
}

/** Sends a request from a new client address, so that tests do not share rate limits. */
export function send(
  base: string,
  method: string,
  path: string,
  { body, headers, from = newAddress(), signal }: CallOptions = {},
): Promise<Response> {
  return fetch(`${base}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      'x-forwarded-for': from,
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: signal ?? AbortSignal.timeout(90_000),
  });
}

export async function call(
  base: string,
  method: string,
  path: string,
  options?: CallOptions,
): Promise<Answer> {
  const response = await send(base, method, path, options);
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : undefined,
  };
}

/** Returns an address that no other test has used. */
export function newAddress(): string {
  addresses += 1;
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

let addresses = Math.floor(Math.random() * 0xffffff);

/** Yields the pages of a list from first to last by following their `Link` headers. */
export async function* pagesOf(
  ask: (path: string) => Promise<Answer>,
  first: string,
): AsyncGenerator<Answer> {
  for (let path: string | undefined = first; path !== undefined;) {
    const page: Answer = await ask(path);
    yield page;
    path = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
  }
}

export interface ReceivedEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  /** Parsed JSON. */
  readonly data: Json;
}

/** Yields the server-sent events of a response as they arrive. */
export async function* eventsOf(response: Response): AsyncGenerator<ReceivedEvent> {
  if (!response.body) throw new Error('the response has no body');
  const events = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { id, event, data } of events) yield { id, event, data: JSON.parse(data) };
}

/** Returns all events until the stream ends. */
export async function allEvents(response: Response): Promise<ReceivedEvent[]> {
  const events: ReceivedEvent[] = [];
  for await (const event of eventsOf(response)) events.push(event);
  return events;
}
