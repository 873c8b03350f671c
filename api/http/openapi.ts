import { STATUS_CODES } from 'node:http';
import * as z from 'zod';
import { isObject } from '../../src/lib/json.js';
import { acceptsApiKeys } from '../auth/key-scope.js';
import { formatOf, type BodyFormat } from './body-format.js';
import { errorStatuses } from './derived-errors.js';
import type { Endpoint, ResponseBody } from './endpoint.js';
import { jsonSchemaOf, type Json } from './json-schema.js';
import { mayStream, schemaOf } from './presenter.js';
import { limitsOf, type WideLimit } from './rate-limit.js';

const ERROR: Json = {
  type: 'object',
  required: ['error'],
  properties: { error: { type: 'string' }, code: { type: 'string' } },
  additionalProperties: true,
};

const ERROR_REFERENCE: Json = { $ref: '#/components/schemas/Error' };

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

const seconds = (description: string): Json => ({ description, schema: { type: 'integer' } });

const RATE_LIMIT_HEADERS: Json = {
  'RateLimit-Limit': seconds('Amount that the limit admits, such as requests of a window'),
  'RateLimit-Remaining': seconds('Amount left of the limit'),
  'RateLimit-Reset': seconds('Seconds until the limit admits more'),
};

const TEXT: Json = { type: 'string' };

const LOCATION: Json = { Location: { description: 'URL to go to', schema: TEXT } };

const RETRY_AFTER: Json = { 'Retry-After': seconds('Seconds to wait') };

/** Builds the OpenAPI 3.1 document of a listener, purely from its declarations. */
export function openApiDocument(listener: {
  readonly title: string;
  readonly endpoints: readonly Endpoint[];
  readonly limits: readonly WideLimit[];
}): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const endpoint of listener.endpoints) {
    const template = endpoint.path.replace(/:(\w+)/g, '{$1}');
    const operations = (paths[template] ??= {});
    operations[endpoint.method.toLowerCase()] = operationOf(endpoint, listener.limits);
  }
  return {
    openapi: '3.1.0',
    info: { title: listener.title, version: '1' },
    servers: [{ url: '/' }],
    tags: [...new Set(listener.endpoints.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { Error: ERROR },
      securitySchemes: Object.fromEntries(
        listener.endpoints.flatMap(({ auth }) => auth.schemes.flatMap(Object.entries)),
      ),
    },
  };
}

function operationOf(endpoint: Endpoint, limits: readonly WideLimit[]): Json {
  const { body, operationId } = endpoint;
  const applying = limitsOf(endpoint, limits);
  const limited = [...applying, ...[endpoint.limitOfCaller ?? []].flat()].map(
    ({ name, max, windowMs }) => `Limit ${name}: ${max} requests in ${windowMs / 1000} s.`,
  );
  const description = [...scopeTextOf(endpoint), ...limited].join('\n\n');
  return {
    ...(operationId !== undefined && { operationId }),
    summary: endpoint.summary,
    ...(description !== '' && { description }),
    tags: [endpoint.tag],
    security: securityOf(endpoint),
    parameters: parametersOf(endpoint),
    ...(body && { requestBody: requestBodyOf(formatOf(body)) }),
    responses: responsesOf(endpoint, applying.length > 0),
  };
}

/** Returns the sentence about API keys, which Swagger UI does not derive from roles. */
function scopeTextOf({ auth, keyScope }: Endpoint): readonly string[] {
  if (keyScope === undefined || !acceptsApiKeys(auth)) return [];
  return [keyScope === 'any' ? 'Any API key.' : `API keys need the scope \`${keyScope}\`.`];
}

function requestBodyOf({ schema, types }: BodyFormat): Json {
  const content = { schema: jsonSchemaOf(schema) };
  return {
    // A missing body is validated as an empty one.
    required: ![undefined, {}].some((none) => schema.safeParse(none).success),
    content: Object.fromEntries(
      (types.length > 0 ? types : ['*/*']).map((type) => [type, content]),
    ),
  };
}

function parametersOf({ path, params, query, headers, idempotent }: Endpoint): Json[] {
  const declared = params && propertiesOf(params).properties;
  const inPath = path
    .split('/')
    .filter((segment) => segment.startsWith(':'))
    .map((segment) => segment.slice(1))
    .map((name) => ({
      name,
      in: 'path',
      required: true,
      schema: declared?.[name] ?? { type: 'string' },
    }));
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'Repeating a request with the same key returns the first answer.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  };
  return [
    ...inPath,
    ...namedParameters(query, 'query'),
    ...namedParameters(headers, 'header'),
    ...(idempotent ? [key] : []),
  ];
}

function namedParameters(schema: z.ZodType | undefined, place: 'query' | 'header'): Json[] {
  if (schema === undefined) return [];
  const { properties, required } = propertiesOf(schema);
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: required.has(name),
    schema: property,
  }));
}

function propertiesOf(schema: z.ZodType) {
  const { properties, required } = jsonSchemaOf(schema);
  return {
    properties: isObject(properties) ? properties : {},
    required: new Set(Array.isArray(required) ? required : []),
  };
}

function responsesOf(endpoint: Endpoint, limited: boolean): Json {
  const responses: Record<string, Json> = {};
  const common = limited ? RATE_LIMIT_HEADERS : {};
  const { errorForm } = endpoint;
  const error = errorForm ? jsonSchemaOf(errorForm.schema) : ERROR_REFERENCE;
  for (const status of errorStatuses(endpoint)) {
    responses[status] = {
      description: STATUS_CODES[status] ?? String(status),
      headers: status === 429 ? { ...RATE_LIMIT_HEADERS, ...RETRY_AFTER } : common,
      content: { 'application/json': { schema: error } },
    };
  }
  for (const [status, declared] of Object.entries(endpoint.responses)) {
    const content = contentOf(declared);
    responses[status] = {
      description: STATUS_CODES[Number(status)] ?? status,
      headers: declared === 'redirect' ? { ...common, ...LOCATION } : common,
      ...(content && { content }),
    };
  }
  return responses;
}

function contentOf(declared: ResponseBody): Json | undefined {
  if (declared === 'html') return { 'text/html': { schema: TEXT } };
  if (declared === 'file') return { '*/*': { schema: jsonSchemaOf(z.file()) } };
  const schema = schemaOf(declared);
  if (schema === undefined && !mayStream(declared)) return undefined;
  return {
    ...(schema && { 'application/json': { schema: jsonSchemaOf(schema) } }),
    ...(mayStream(declared) && { 'text/event-stream': { schema: TEXT } }),
  };
}
