import * as z from 'zod';
import { isObject } from '../../src/lib/json.js';

/** A JSON schema without references. */
export type Schema = Readonly<Record<string, unknown>>;

/** A named value that an operation takes elsewhere than in its body. */
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: Schema;
}

/** What an operation may answer with one status. */
export interface DeclaredAnswer {
  readonly types: readonly string[];
  /** Of its JSON. */
  readonly json: z.ZodType | undefined;
}

/** An operation as a stranger reads of it. */
export interface Operation {
  /** `GET /api/agents/{id}`. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body:
    | { readonly schema: Schema; readonly accepts: z.ZodType; readonly required: boolean }
    | undefined;
  readonly answers: ReadonlyMap<number, DeclaredAnswer>;
}

/** The operations of an OpenAPI document, which is all that is known of a listener here. */
export function operationsOf(document: unknown): Operation[] {
  const whole = resolve(document, document);
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
    // As api/http/openapi.ts writes them.
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
      Object.entries(objectAt(declared, 'responses')).map(([status, answer]) => [
        Number(status),
        answerOf(answer),
      ]),
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
  throw new TypeError(`the document has no ${name} where one belongs`);
}

/** Puts what references name in their place. */
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
