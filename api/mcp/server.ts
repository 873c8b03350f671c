import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  SUPPORTED_PROTOCOL_VERSIONS,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { ToolSums, type ToolCount } from '../../src/ai/usage/tool-counts.js';
import { PLATFORM_TOOLS } from '../../src/ai/usage/usage-record.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { isObject } from '../../src/lib/json.js';
import type { Answer } from '../http/answer.js';
import type { CallEndpoint, Given } from '../http/endpoint.js';
import { shownTool, type Tool } from './tool.js';

export const PROTOCOL_VERSIONS: readonly string[] = SUPPORTED_PROTOCOL_VERSIONS;

/** Never used by a server that requests no input of users, and expensive to make. */
const SCHEMA_VALIDATOR = new AjvJsonSchemaValidator();

/** Answers are JSON regardless of the types that the client accepts, so that simple programs are served as well. */
const JSON_BOTH_WAYS = {
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
};

/** A request of the MCP endpoint. */
export interface McpRequest {
  readonly url: string;
  /** Undefined in requests of clients that have not negotiated a version yet. */
  readonly protocolVersion: string | undefined;
  /** Messages of JSON-RPC, parsed and unchecked. */
  readonly body: unknown;
  readonly call: CallEndpoint;
}

/** An answer of the MCP endpoint; without a body for 202. */
export interface McpAnswer {
  readonly status: number;
  readonly body: unknown;
  /** The tools that ran for the request, as they count in the usage of tools. */
  readonly tools: readonly ToolCount[];
}

/** A server of the Model Context Protocol without sessions: each request is complete. */
export class McpGateway {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #info: { readonly name: string; readonly version: string };
  readonly #listed: { readonly tools: ReturnType<typeof shownTool>[] };

  constructor(tools: readonly Tool[], info: { readonly name: string; readonly version: string }) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#info = info;
    this.#listed = { tools: tools.map(shownTool) };
  }

  /** Answers the messages of one request, which has a transport and a server of its own. */
  async answer({ body, call, protocolVersion, url }: McpRequest): Promise<McpAnswer> {
    const sums = new ToolSums();
    const server = this.#serverFor(call, sums);
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    try {
      const headers = {
        ...JSON_BOTH_WAYS,
        ...(protocolVersion !== undefined && { 'mcp-protocol-version': protocolVersion }),
      };
      const request = new Request(url, { method: 'POST', headers });
      const response = await transport.handleRequest(request, { parsedBody: answerable(body) });
      const { status } = response;
      const answer: unknown = response.body === null ? undefined : await response.json();
      return { status, body: answer, tools: sums.list() };
    } finally {
      await server.close();
    }
  }

  /** Returns a server of one request. Endpoints check the arguments, so that no tool is registered each time. */
  #serverFor(call: CallEndpoint, sums: ToolSums): Server {
    const server = new Server(this.#info, {
      capabilities: { tools: { listChanged: false } },
      jsonSchemaValidator: SCHEMA_VALIDATOR,
    });
    server.setRequestHandler(ListToolsRequestSchema, () => this.#listed);
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
      const tool = this.#tools.get(params.name);
      if (!tool) return failed(`Tool ${params.name} not found: tools/list has the names`);
      const began = performance.now();
      let successes = 0;
      try {
        const result = await run(tool, params.arguments ?? {}, call);
        if (result.isError !== true) successes = 1;
        return result;
      } finally {
        const ms = Math.round(performance.now() - began);
        sums.add(`${PLATFORM_TOOLS}/${tool.name}`, { calls: 1, completed: 1, successes, ms });
      }
    });
    return server;
  }
}

async function run(
  { endpoint, partsOf }: Tool,
  args: Readonly<Record<string, unknown>>,
  call: CallEndpoint,
): Promise<CallToolResult> {
  let parts: Given;
  try {
    parts = partsOf(args);
  } catch (error) {
    if (!(error instanceof BadRequestError)) throw error;
    return failed(error.message);
  }
  const answer = await call(endpoint, parts);
  const content = [textOf(typeof answer.body === 'string' ? answer.body : '{}')];
  if (answer.status >= 400) return { content, isError: true };
  const cursor = nextCursor(answer);
  return cursor === undefined
    ? { content }
    : { content: [...content, textOf(`More: call again with cursor ${cursor}`)] };
}

const failed = (error: string): CallToolResult => ({
  content: [textOf(JSON.stringify({ error }))],
  isError: true,
});

const textOf = (text: string) => ({ type: 'text' as const, text });

/** Returns the cursor of the next page, which the endpoint names in `Link`. */
function nextCursor({ headers }: Answer): string | undefined {
  const link = headers?.Link;
  const [, query] = typeof link === 'string' ? (/^<[^?>]*\?([^>]*)>/.exec(link) ?? []) : [];
  return new URLSearchParams(query).get('cursor') ?? undefined;
}

/**
 * Returns the messages without cancellations: nothing of an earlier request runs here, and the transport would
 * wait for ever for the answer to a request that the same batch cancels.
 */
function answerable(body: unknown): unknown {
  if (!Array.isArray(body)) return body;
  const kept = body.filter((each) => !isObject(each) || each.method !== 'notifications/cancelled');
  return kept.length === 0 ? body : kept;
}
