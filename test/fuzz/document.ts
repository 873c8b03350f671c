import * as z from 'zod';
import { isObject } from '../../src/lib/json.js';

/** A JSON schema without references. */
export type Schema = Readonly<Record<string, unknown>>;

/** A named parameter of an operation outside of its body. */
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: Schema;
}

/** The answer that an operation declares for a status. */
export interface DeclaredAnswer {
  readonly types: readonly string[];
  /** Schema of its JSON. */
  readonly json: z.ZodType | undefined;
}

/** An operation as described to a client. */
export interface Operation {
  /** For example `GET /api/agents/{id}`. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body:
    | { readonly schema: Schema; readonly accepts: z.ZodType; readonly required: boolean }
    | undefined;
  readonly answers: ReadonlyMap<number, DeclaredAnswer>;
}

/** The errors that a document has as `default`. */
const OF_ANY_REQUEST: readonly number[] = [421, 500];

/** Returns the operations of an OpenAPI document, the fuzzer's only source about a listener. */
export function operationsOf(document: unknown): Operation[] {
  const whole = resolved(document);
  return Object.entries(objectAt(whole, 'paths')).flatMap(([path, methods]) =>
    Object.entries(isObject(methods) ? methods : {}).map(([method, declared]) =>
      operationOf(method.toUpperCase(), path, isObject(declared) ? declared : {}),
    ),
  );
}

function operationOf(method: string, path: string, declared: Schema): Operation {
  const { parameters = [], requestBody } = declared;
  const content = requestBody === undefined ? {} : objectAt(requestBody, 'content');
  const schema = content['application/json'];
  return {
    name: `${method} ${path}`,
    method,
    path,
    // Written by api/http/openapi.ts.
    parameters: parameters as Parameter[],
    body:
      schema === undefined
        ? undefined
        : {
            schema: objectAt(schema, 'schema'),
            accepts: z.fromJSONSchema(objectAt(schema, 'schema')),
            required: isObject(requestBody) && requestBody.required === true,
          },
    answers: new Map(
      Object.entries(objectAt(declared, 'responses')).flatMap(([status, answer]) =>
        (status === 'default' ? OF_ANY_REQUEST : [Number(status)]).map(
          (each) => [each, answerOf(answer)] as const,
        ),
      ),
    ),
  };
}

function answerOf(declared: unknown): DeclaredAnswer {
  const content = isObject(declared) && isObject(declared.content) ? declared.content : {};
  const json = content['application/json'];
  return {
    types: Object.keys(content),
    json: json === undefined ? undefined : z.fromJSONSchema(objectAt(json, 'schema')),
  };
}

function objectAt(holder: unknown, name: string): Schema {
  const found = isObject(holder) ? holder[name] : undefined;
  if (isObject(found)) return found;
  throw new TypeError(`the document has no ${name} where one is required`);
}

/** Returns a document with the values that its references name in their places. */
export const resolved = (document: unknown): unknown => resolve(document, document);

function resolve(node: unknown, root: unknown): unknown {
  if (Array.isArray(node)) return node.map((each) => resolve(each, root));
  if (!isObject(node)) return node;
  if (typeof node.$ref === 'string') {
    const names = node.$ref.split('/').slice(1);
    return resolve(
      names.reduce<unknown>((at, name) => objectAt(at, name), root),
      root,
    );
  }
  return Object.fromEntries(
    Object.entries(node).map(([name, each]) => [name, resolve(each, root)]),
  );
}
