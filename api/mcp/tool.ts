import { BadRequestError } from '../../src/lib/errors.js';
import { isObject } from '../../src/lib/json.js';
import { formatOf } from '../http/body-format.js';
import type { Endpoint, Given } from '../http/endpoint.js';
import { JsonSchemas, propertiesOf, type Json } from '../http/json-schema.js';

/** An endpoint as a tool: the differences between both. */
export interface ToolOptions {
  readonly endpoint: Endpoint;
  /** Sentences for models, after the summary of the endpoint. */
  readonly hint?: string;
  /** Text that replaces the summary where the summary speaks of more than the tool does. */
  readonly description?: string;
  /** Fields of the endpoint that are no arguments of the tool, with their fixed values. */
  readonly fixed?: Readonly<Record<string, unknown>>;
  /** True if the tool interrupts or removes something. */
  readonly destructive?: boolean;
  /** True if a repetition changes nothing. */
  readonly repeatable?: boolean;
  /** Arguments of the example, besides `id`. */
  readonly example: Readonly<Record<string, unknown>>;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly endpoint: Endpoint;
  /** JSON Schema of the arguments. */
  readonly inputSchema: InputSchema;
  readonly annotations: {
    readonly title: string;
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
  readonly example: Readonly<Record<string, unknown>>;
  /** Returns the parts of the endpoint's request. @throws BadRequestError naming the argument */
  readonly partsOf: (args: Readonly<Record<string, unknown>>) => Given;
}

type InputSchema = Json & {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, Json>>;
  readonly required?: string[];
};

/** A tool's argument: the field of the endpoint that it becomes. */
interface Argument {
  readonly part: 'params' | 'query' | 'body';
  readonly field: string;
  readonly schema: Json;
  readonly required: boolean;
}

/** In place of an agent's id in examples. */
const AGENT_PLACE = '<AGENT_ID>';

/** Makes a tool of an endpoint: its arguments are the fields of path, query and body; an agent is `id`. */
export function toolOf(name: string, options: ToolOptions): Tool {
  const { destructive = false, endpoint, example, fixed = {}, hint, repeatable = false } = options;
  const all = argumentsOf(endpoint, fixed);
  const isRead = endpoint.method === 'GET';
  const summary = options.description ?? endpoint.summary;
  const required = [...all].filter(([, argument]) => argument.required).map(([each]) => each);
  const properties = Object.fromEntries([...all].map(([each, { schema }]) => [each, schema]));
  return {
    name,
    endpoint,
    description: hint === undefined ? `${summary}.` : `${summary}. ${hint}`,
    inputSchema: {
      type: 'object',
      properties,
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
    annotations: {
      title: summary,
      readOnlyHint: isRead,
      destructiveHint: destructive,
      idempotentHint: isRead || repeatable,
      // A tool reaches nothing but the platform, whose agents may do more by themselves.
      openWorldHint: name === 'agents_chat',
    },
    example: all.has('id') && all.get('id')?.required ? { id: AGENT_PLACE, ...example } : example,
    partsOf: (args) => givenOf(all, fixed, args),
  };
}

/** Returns a tool as clients see it. */
export function shownTool({ annotations, description, inputSchema, name }: Tool) {
  return { name, title: annotations.title, description, inputSchema, annotations };
}

/** Returns the arguments by their names. */
function argumentsOf(
  { body, params, query }: Endpoint,
  fixed: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, Argument> {
  const schemas = new JsonSchemas();
  const parts = { params, query, body: body && formatOf(body).schema } as const;
  const found = Object.entries(parts).flatMap(([part, schema]) => {
    if (schema === undefined) return [];
    const { properties, required } = propertiesOf(schemas.of(schema));
    return Object.entries(properties)
      .filter(([field]) => !Object.hasOwn(fixed, field))
      .map(([field, property]): [string, Argument] => [
        field === 'agentId' ? 'id' : field,
        {
          // Safe cast: the keys of `parts`.
          part: part as Argument['part'],
          field,
          schema: isObject(property) ? property : {},
          required: required.has(field),
        },
      ]);
  });
  if (Object.keys(schemas.components).length > 0) {
    throw new TypeError('the schema of a tool stands for itself: it refers to no component');
  }
  return new Map(found);
}

function givenOf(
  known: ReadonlyMap<string, Argument>,
  fixed: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
): Given {
  const parts = { params: {}, query: {}, body: { ...fixed } } satisfies Given;
  for (const [name, { required }] of known) {
    if (required && args[name] === undefined) throw new BadRequestError(`${name} is required`);
  }
  for (const [name, value] of Object.entries(args)) {
    const argument = known.get(name);
    if (argument === undefined) throw new BadRequestError(`${name} is not a known field`);
    const { field, part } = argument;
    if (name === 'id' && typeof value !== 'string') throw new BadRequestError('id must be text');
    // A path and a query have only texts, from which their schemas read numbers.
    const sent = part === 'body' ? value : textOf(name, value);
    Object.defineProperty(parts[part], field, { value: sent, enumerable: true, writable: true });
  }
  return parts;
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new BadRequestError(`${name} must be text or a number`);
}
