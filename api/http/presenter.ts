import { Readable } from 'node:stream';
import type { Logger } from 'pino';
import type * as z from 'zod';
import type { Answer } from './answer.js';
import { isAnswerHeader, ownHeadersOf } from './answer-headers.js';
import type { Endpoint, ErrorForm, ReplyTo, ResponseBody, Responses } from './endpoint.js';
import type { ErrorAnswer } from './error-answer.js';
import type { AnyReply, ReplyHeaders } from './reply.js';

/** Status in the access log (never sent) if the client disconnected before the answer. */
export const CLIENT_LEFT = 499;

export const JSON_TYPE = 'application/json; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';

export function jsonAnswer(status: number, body: unknown, headers?: ReplyHeaders): Answer {
  return { status, headers, contentType: JSON_TYPE, body: JSON.stringify(body) };
}

export function errorJson(form: ErrorForm | undefined, error: ErrorAnswer): Answer {
  const body = form?.of(error) ?? error.body;
  return jsonAnswer(error.status, body, retryHeaders(error));
}

/** Returns `Retry-After` with the limit headers: clients expect the delay in that header. */
function retryHeaders({ limitHeaders, retryAfter }: ErrorAnswer): ReplyHeaders | undefined {
  if (retryAfter === undefined) return limitHeaders;
  return { ...limitHeaders, 'Retry-After': String(retryAfter) };
}

/** An answer that the endpoint does not declare: a defect, thrown outside production. */
export class UndeclaredAnswerError extends Error {
  override readonly name = 'UndeclaredAnswerError';

  constructor(route: string, problems: readonly string[]) {
    super(`${route} sent an undeclared answer: ${problems.join('; ')}`);
  }
}

export interface Presenter {
  present(reply: ReplyTo<Responses>): Answer;
  presentError(error: ErrorAnswer): Answer;
}

/** Converts results and errors to answers, and checks them; `errors` are the declared error statuses. */
export function presenter(
  endpoint: Endpoint,
  errors: ReadonlySet<number>,
  options: { readonly production: boolean; readonly log: Logger },
): Presenter {
  const route = `${endpoint.method} ${endpoint.path}`;
  const known: ReadonlySet<string> = new Set(ownHeadersOf(endpoint));

  /** Answers of frozen bodies, which many requests share: each is checked and written once. */
  const shared = new WeakMap<object, Answer>();

  function undeclared(problems: readonly string[]): void {
    if (!options.production) throw new UndeclaredAnswerError(route, problems);
    options.log.error({ route, problems }, 'answer differs from its declaration');
  }

  function checkHeaders(headers: ReplyHeaders): void {
    const others = Object.keys(headers).filter((name) => isAnswerHeader(name) && !known.has(name));
    if (others.length > 0) undeclared(others.map((name) => `header ${name}`));
  }

  function checkJson(status: number, body: unknown): void {
    const declared = endpoint.responses[status];
    const schema = schemaOf(declared);
    if (schema === undefined) {
      if (declared !== 'empty') undeclared([`status ${status} with JSON`]);
      else if (body !== undefined) undeclared([`status ${status} with a body`]);
      return;
    }
    const result = schema.safeParse(body);
    if (!result.success) undeclared(result.error.issues.map(nameOf));
  }

  function checkKind(status: number, kind: Exclude<AnyReply['kind'], 'json'>): void {
    const declared = endpoint.responses[status];
    const fits = kind === 'stream' ? mayStream(declared) : declared === kind;
    if (!fits) undeclared([`status ${status} as ${kind}`]);
  }

  return {
    present(reply) {
      const { status, headers, kind } = reply;
      if (headers !== undefined) checkHeaders(headers);
      if (kind === 'json') {
        const known = isShared(reply.body) ? shared.get(reply.body) : undefined;
        if (known?.status === status) return { ...known, headers };
        checkJson(status, reply.body);
        if (reply.body === undefined) {
          return { status, headers, contentType: undefined, body: undefined };
        }
        const answer = jsonAnswer(status, reply.body, headers);
        if (isShared(reply.body)) shared.set(reply.body, answer);
        return answer;
      }
      checkKind(status, kind);
      switch (kind) {
        case 'stream': {
          const { source, contentType } = reply;
          const isBody = source instanceof Readable || typeof source === 'string';
          return { status, headers, contentType, body: isBody ? source : Readable.from(source) };
        }
        case 'file': {
          const { content, contentType, name: attachment } = reply;
          return { status, headers, contentType, attachment, body: content };
        }
        case 'html':
          return { status, headers, contentType: HTML_TYPE, body: reply.html };
        case 'redirect': {
          const location = { ...headers, Location: reply.location };
          return { status, headers: location, contentType: undefined, body: undefined };
        }
      }
    },

    presentError(error) {
      const { status, body } = error;
      if (!errors.has(status)) {
        if (endpoint.responses[status] === undefined) undeclared([`status ${status}`]);
        else checkJson(status, body);
      }
      return errorJson(endpoint.errorForm, error);
    },
  };
}

export function schemaOf(declared: ResponseBody | undefined): z.ZodType | undefined {
  if (declared === undefined || typeof declared === 'string') return undefined;
  return isPair(declared) ? declared[0] : declared;
}

export function mayStream(declared: ResponseBody | undefined): boolean {
  return declared === 'stream' || (typeof declared === 'object' && isPair(declared));
}

function isPair(declared: ResponseBody): declared is readonly [z.ZodType, 'stream'] {
  return Array.isArray(declared);
}

const isShared = (body: unknown): body is object =>
  typeof body === 'object' && body !== null && Object.isFrozen(body);

/** Names the field and the problem; never the value, which may be personal data. */
function nameOf(issue: z.core.$ZodIssue): string {
  const keys = issue.code === 'unrecognized_keys' ? issue.keys : [];
  return `${issue.code} at ${[...issue.path, ...keys].map(String).join('.') || '(body)'}`;
}
