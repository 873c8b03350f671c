import { STATUS_CODES } from 'node:http';
import * as z from 'zod';
import { isObject } from '../../src/lib/json.js';
import { acceptsApiKeys } from '../auth/key-scope.js';
import {
  ANSWER_HEADERS,
  ownHeadersOf,
  RATE_LIMIT_HEADERS,
  type AnswerHeader,
} from './answer-headers.js';
import { formatOf, type BodyFormat } from './body-format.js';
import { errorStatuses } from './derived-errors.js';
import type { Endpoint, ErrorForm, ResponseBody } from './endpoint.js';
import { JsonSchemas, propertiesOf, type Json } from './json-schema.js';
import { mayStream, schemaOf } from './presenter.js';
import { limitsOf, type WideLimit } from './rate-limit.js';
import { TAGS } from './tags.js';

const ERROR = z
  .looseObject({
    error: z.string().describe('A sentence for people, which may change'),
    code: z.string().optional().describe('The cause for programs'),
  })
  .meta({ id: 'Error' });

/** A parameter of an operation. */
interface Parameter extends Json {
  readonly name: string;
}

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Repeating a request with the same key returns the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

/** Headers that every client sets by itself. */
const OF_CLIENTS: ReadonlySet<string> = new Set(['accept', 'cookie', 'origin', 'user-agent']);

/** Errors that are not specific to an operation; the document has them as `default`. */
const OF_ANY_REQUEST: ReadonlySet<number> = new Set([421, 500]);

const TEXT: Json = { type: 'string' };

interface Described {
  readonly title: string;
  /** The version of the document. */
  readonly release: string;
  /** Address at which callers reach the operator. */
  readonly contactUrl?: string | undefined;
  readonly endpoints: readonly Endpoint[];
  readonly limits: readonly WideLimit[];
}

/** Builds the OpenAPI 3.1 document of a listener, purely from its declarations. */
export function openApiDocument(listener: Described): Json {
  return new Document(listener).json();
}

class Document {
  readonly #listener: Described;
  readonly #schemas = new JsonSchemas();
  /** Parameters of several operations, as names of components by their JSON. */
  readonly #repeated: ReadonlyMap<string, string>;
  readonly #headers: Record<string, Json> = {};
  readonly #errors: Record<string, Json> = {};

  constructor(listener: Described) {
    this.#listener = listener;
    this.#repeated = repeatedOf(listener.endpoints.flatMap((each) => this.#parametersOf(each)));
  }

  json(): Json {
    const { contactUrl, endpoints, release, title } = this.#listener;
    const paths: Record<string, Record<string, Json>> = {};
    for (const endpoint of endpoints) {
      const template = endpoint.path.replace(/:(\w+)/g, '{$1}');
      const operations = (paths[template] ??= {});
      operations[endpoint.method.toLowerCase()] = this.#operationOf(endpoint);
    }
    return {
      openapi: '3.1.0',
      info: {
        title,
        version: release,
        ...(contactUrl !== undefined && {
          contact: { name: 'Operator of the platform', url: contactUrl },
        }),
      },
      servers: [{ url: '/' }],
      tags: [...new Set(endpoints.map(({ tag }) => tag))].map(tagOf),
      paths,
      components: {
        schemas: this.#schemas.components,
        parameters: Object.fromEntries(
          [...this.#repeated].map(([declared, name]) => [name, JSON.parse(declared)]),
        ),
        headers: this.#headers,
        responses: this.#errors,
        securitySchemes: Object.fromEntries(
          endpoints.flatMap(({ auth }) => auth.schemes.flatMap(Object.entries)),
        ),
      },
    };
  }

  #operationOf(endpoint: Endpoint): Json {
    const { body, operationId } = endpoint;
    const applying = limitsOf(endpoint, this.#listener.limits);
    const limited = [...applying, ...[endpoint.limitOfCaller ?? []].flat()].map(
      ({ name, max, windowMs }) => `Limit ${name}: ${max} requests in ${windowMs / 1000} s.`,
    );
    const description = [...scopeTextOf(endpoint), ...limited].join('\n\n');
    const parameters = this.#parametersOf(endpoint).map((each) => this.#shared(each));
    return {
      ...(operationId !== undefined && { operationId }),
      summary: endpoint.summary,
      ...(description !== '' && { description }),
      tags: [endpoint.tag],
      security: securityOf(endpoint),
      ...(parameters.length > 0 && { parameters }),
      ...(body && { requestBody: this.#requestBodyOf(formatOf(body)) }),
      responses: this.#responsesOf(endpoint, applying.length > 0),
    };
  }

  #requestBodyOf({ schema, types }: BodyFormat): Json {
    const content = { schema: this.#schemas.of(schema) };
    return {
      // A missing body is validated as an empty one.
      required: ![undefined, {}].some((none) => schema.safeParse(none).success),
      content: Object.fromEntries(
        (types.length > 0 ? types : ['*/*']).map((type) => [type, content]),
      ),
    };
  }

  #parametersOf({ path, params, query, headers, idempotent }: Endpoint): Parameter[] {
    const declared = params && propertiesOf(this.#schemas.of(params)).properties;
    const inPath = path
      .split('/')
      .filter((segment) => segment.startsWith(':'))
      .map((segment) => segment.slice(1))
      .map((name) => parameter(name, 'path', true, declared?.[name] ?? TEXT));
    return [
      ...inPath,
      ...this.#namedParameters(query, 'query'),
      ...this.#namedParameters(headers, 'header').filter(({ name }) => !OF_CLIENTS.has(name)),
      ...(idempotent ? [IDEMPOTENCY_KEY] : []),
    ];
  }

  #namedParameters(schema: z.ZodType | undefined, place: 'query' | 'header') {
    if (schema === undefined) return [];
    const { properties, required } = propertiesOf(this.#schemas.of(schema));
    return Object.entries(properties).map(([name, property]) =>
      parameter(name, place, required.has(name), property),
    );
  }

  #shared(declared: Parameter): Json {
    const name = this.#repeated.get(JSON.stringify(declared));
    return name === undefined ? declared : { $ref: `#/components/parameters/${name}` };
  }

  #responsesOf(endpoint: Endpoint, limited: boolean): Json {
    const responses: Record<string, Json> = {};
    for (const status of errorStatuses(endpoint)) {
      if (!OF_ANY_REQUEST.has(status))
        responses[status] = this.#errorOf(status, endpoint.errorForm);
    }
    const common = ['X-Request-Id', ...(limited ? RATE_LIMIT_HEADERS : [])] as const;
    const own = ownHeadersOf(endpoint);
    for (const [status, declared] of Object.entries(endpoint.responses)) {
      const content = this.#contentOf(declared);
      const location = declared === 'redirect' ? (['Location'] as const) : [];
      responses[status] = {
        description: STATUS_CODES[Number(status)] ?? status,
        headers: this.#headersOf([...location, ...own, ...common]),
        ...(content && { content }),
      };
    }
    responses.default = this.#errorOf('default', endpoint.errorForm);
    return responses;
  }

  /** Refers to the answer of an error, which all operations share; the headers of limits are there if one applies. */
  #errorOf(status: number | 'default', form: ErrorForm | undefined): Json {
    const name = `${form?.name ?? 'Error'}${status === 'default' ? '' : status}`;
    const isLater = status === 429 || status === 503;
    this.#errors[name] ??= {
      description:
        status === 'default' ? 'Any other error' : (STATUS_CODES[status] ?? String(status)),
      headers: this.#headersOf([
        ...(isLater ? (['Retry-After'] as const) : []),
        'X-Request-Id',
        ...RATE_LIMIT_HEADERS,
      ]),
      content: { 'application/json': { schema: this.#schemas.ofAnswer(form?.schema ?? ERROR) } },
    };
    return { $ref: `#/components/responses/${name}` };
  }

  #headersOf(names: readonly AnswerHeader[]): Json {
    const refer = (name: AnswerHeader): readonly [string, Json] => {
      // Short, since every operation has several of these references.
      const component = name.replace(/^(?:RateLimit|X)-/, '').replaceAll('-', '');
      this.#headers[component] = ANSWER_HEADERS[name];
      return [name, { $ref: `#/components/headers/${component}` }];
    };
    return Object.fromEntries(names.map(refer));
  }

  #contentOf(declared: ResponseBody): Json | undefined {
    if (declared === 'html') return { 'text/html': { schema: TEXT } };
    if (declared === 'file') return { '*/*': { schema: this.#schemas.of(z.file()) } };
    const schema = schemaOf(declared);
    if (schema === undefined && !mayStream(declared)) return undefined;
    return {
      ...(schema && { 'application/json': { schema: this.#schemas.ofAnswer(schema) } }),
      ...(mayStream(declared) && { 'text/event-stream': { schema: TEXT } }),
    };
  }
}

function tagOf(name: string): Json {
  const description = TAGS.get(name);
  return { name, ...(description !== undefined && { description }) };
}

function parameter(
  name: string,
  place: 'path' | 'query' | 'header',
  required: boolean,
  of: unknown,
): Parameter {
  const { description, ...schema } = isObject(of) ? of : {};
  return { name, in: place, required, ...(description !== undefined && { description }), schema };
}

/** Returns the parameters that occur several times, as names of components by their JSON. */
function repeatedOf(parameters: readonly Parameter[]): ReadonlyMap<string, string> {
  const once = new Set<string>();
  const repeated = new Map<string, string>();
  const names = new Set<string>();
  for (const each of parameters) {
    const declared = JSON.stringify(each);
    if (repeated.has(declared)) continue;
    if (!once.has(declared)) {
      once.add(declared);
      continue;
    }
    const words = each.name.split(/[^A-Za-z0-9]/);
    const base = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
    let name = base;
    for (let n = 2; names.has(name); n += 1) name = `${base}${n}`;
    names.add(name);
    repeated.set(declared, name);
  }
  return repeated;
}

/** Roles of a scheme that is not OAuth 2 may be named since OpenAPI 3.1. */
function securityOf({ auth: { optional, schemes }, keyScope }: Endpoint): readonly Json[] {
  const scopes = keyScope === undefined || keyScope === 'any' ? [] : [keyScope];
  const needed = schemes.map((together) =>
    Object.fromEntries(
      Object.keys(together).map((name) => [name, name === 'apiKey' ? scopes : []]),
    ),
  );
  return optional ? [{}, ...needed] : needed;
}

/** Returns the sentence about API keys, which Swagger UI does not derive from roles. */
function scopeTextOf({ auth, keyScope }: Endpoint): readonly string[] {
  if (keyScope === undefined || !acceptsApiKeys(auth)) return [];
  return [keyScope === 'any' ? 'Any API key.' : `API keys need the scope \`${keyScope}\`.`];
}
