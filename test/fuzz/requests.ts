import type { Random } from '../support/random.js';
import type { Operation, Parameter } from './document.js';
import { nastyText, spoilt, valueOf, type Known } from './values.js';

/** A request to send. */
export interface FuzzRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as sent. */
  readonly body: string | undefined;
}

/** Headers that change how a request is read or answered. */
const ODD_HEADERS: readonly Readonly<Record<string, string>>[] = [
  { accept: 'text/event-stream' },
  { accept: 'text/plain;q=0, */*;q=0' },
  { 'idempotency-key': 'a key' },
  { 'idempotency-key': 'k'.repeat(256) },
  { 'idempotency-key': 'the-same-key-again' },
  { 'sec-fetch-site': 'cross-site' },
  { origin: 'null' },
  { 'content-encoding': 'gzip' },
  { 'content-type': 'text/plain' },
  { 'content-type': 'application/json; charset=utf-16' },
  { 'content-type': 'multipart/form-data; boundary=x' },
  { 'x-request-id': '\t"<id>' },
  { 'last-event-id': '-1' },
  { 'x-user-id': 'operator', 'x-user-role': 'admin', 'x-user-email': 'admin@example.com' },
  { 'x-user-plan': '__proto__', 'x-billing-subscription-id': '' },
  { range: 'bytes=0-' },
  { 'if-none-match': '*' },
  { 'x-http-method-override': 'DELETE' },
];

const BROKEN_BODIES = ['', '{', '[1,', 'null', '"text"', '\uFEFF{}', '{"a":1e999}', '{} {}', '\0'];

/** Returns a request for an operation: as declared, as far as the document shows, or partly spoilt. */
export function requestFor(
  operation: Operation,
  random: Random,
  known: Known,
  isSpoilt: boolean,
): FuzzRequest {
  const place = isSpoilt ? random.pick(['path', 'query', 'body', 'body', 'header', 'wire']) : '';
  const path = pathOf(operation, random, known, place === 'path');
  const query = queryOf(operation, random, known, place === 'query');
  const isOdd = place === 'header' || (isSpoilt && random.isOneIn(5));
  const headers = {
    ...headersOf(operation, random, known),
    ...(isOdd && random.pick(ODD_HEADERS)),
  };
  const body = bodyOf(operation, random, known, place);
  return {
    method: operation.method,
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    body,
  };
}

function pathOf(operation: Operation, random: Random, known: Known, isSpoilt: boolean): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = isSpoilt ? nastyText(random) : wordOf(find(operation, name), random, known);
    return encoded(value) || '-';
  });
}

function queryOf(operation: Operation, random: Random, known: Known, isSpoilt: boolean): string {
  const pairs = operation.parameters
    .filter((each) => each.in === 'query' && (each.required || random.isOneIn(2)))
    .map((each) => [each.name, wordOf(each, random, known)] as const);
  const spoiling = isSpoilt
    ? pairs.map(([name, value], index) =>
        index === 0 || random.isOneIn(3)
          ? ([name, nastyText(random)] as const)
          : ([name, value] as const),
      )
    : pairs;
  const twice = isSpoilt && random.isOneIn(4) ? [...spoiling, ...spoiling] : spoiling;
  const more = isSpoilt && random.isOneIn(4) ? [[nastyText(random), 'x'] as const] : [];
  return [...twice, ...more].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&');
}

function headersOf(operation: Operation, random: Random, known: Known): Record<string, string> {
  const taken = operation.parameters.filter(
    (each) => each.in === 'header' && (each.required || random.isOneIn(4)),
  );
  return Object.fromEntries(
    taken.map((each) => [
      each.name,
      wordOf(each, random, known)
        .slice(0, 300)
        .replace(/[^\x21-\x7e]/g, '-'),
    ]),
  );
}

function bodyOf(
  { body }: Operation,
  random: Random,
  known: Known,
  place: string,
): string | undefined {
  if (body === undefined) return place === 'body' ? random.pick(BROKEN_BODIES) : undefined;
  if (place === 'wire') return random.pick(BROKEN_BODIES);
  const made = valueOf(body.schema, random, known);
  return JSON.stringify(place === 'body' ? spoilt(made, random) : made);
}

function find({ name: operation, parameters }: Operation, name: string): Parameter {
  const found = parameters.find((each) => each.in === 'path' && each.name === name);
  if (found) return found;
  throw new TypeError(`${operation} does not declare its parameter ${name}`);
}

function wordOf({ name, schema }: Parameter, random: Random, known: Known): string {
  const value = valueOf(schema, random, known, name);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Encodes invalid Unicode as well, on which `encodeURIComponent` throws. */
function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text.slice(0, 1_000)).toString());
}
