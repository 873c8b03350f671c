import { EventSourceParserStream } from 'eventsource-parser/stream';

/** JSON as it came: tests look into it without saying its type first. */
type Json = ReturnType<typeof JSON.parse>;

/** An answer that was read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body, when it is JSON. */
  readonly body: Json;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client's address as the listener sees it; each call has its own unless it is given. */
  readonly from?: string;
  readonly signal?: AbortSignal;
}

/** Sends a request from an address of its own, so that tests do not use up each other's rates. */
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

/** An address that no other test has used. */
export function newAddress(): string {
  addresses += 1;
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

let addresses = Math.floor(Math.random() * 0xffffff);

/** The pages of a list, from the first to the last, as their `Link` headers name them. */
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
  /** Parsed. */
  readonly data: Json;
}

/** The server-sent events of an answer as they come. */
export async function* eventsOf(response: Response): AsyncGenerator<ReceivedEvent> {
  if (!response.body) throw new Error('the answer has no body');
  const events = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { id, event, data } of events) yield { id, event, data: JSON.parse(data) };
}

/** All events until the stream ends. */
export async function allEvents(response: Response): Promise<ReceivedEvent[]> {
  const events: ReceivedEvent[] = [];
  for await (const event of eventsOf(response)) events.push(event);
  return events;
}
