import * as z from 'zod';
import { ForbiddenError, ServiceError } from '../../src/lib/errors.js';
import { readRelease } from '../../src/platform/process/release.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import type { Endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { RPC_ERRORS } from '../mcp/error-form.js';
import { McpGateway, shownTool } from '../mcp/server.js';
import { mcpTools } from '../mcp/tools.js';
import type { BackendDependencies } from './dependencies.js';

const PATH = '/api/hostmcp/tools';

const gateway = area({ tag: 'MCP', auth: bearer, keyScope: 'any' });

const shown = z
  .strictObject({
    name: z.string(),
    title: z.string(),
    description: z.string(),
    inputSchema: z.looseObject({}).describe('JSON Schema of the arguments'),
    annotations: z.looseObject({}).describe('Hints of the Model Context Protocol'),
  })
  .meta({ id: 'McpTool' });

const message = z.looseObject({ jsonrpc: z.literal('2.0') }).meta({ id: 'RpcMessage' });

const answers = z.union([message, z.array(message)]);

/** Creates `/api/hostmcp/*` (spec 4.15): agents as tools of the Model Context Protocol. */
export function hostMcpEndpoints(
  dependencies: BackendDependencies,
  backend: readonly Endpoint[],
): readonly Endpoint[] {
  const { http } = dependencies.settings;
  const tools = mcpTools(dependencies, backend);
  const listed = tools.map(shownTool);
  const server = new McpGateway(tools, { name: NAME, version: readRelease() });
  const url = new URL(PATH, http.backendPublicUrl).href;
  const origins = new Set(
    [http.webUrl, http.backendUrl, http.backendPublicUrl].map((each) => new URL(each).origin),
  );

  /** Refuses pages of other sites, which a person's browser may let reach this address. */
  const requireOwnOrigin = (origin: string | undefined) => {
    if (origin !== undefined && !origins.has(origin)) {
      throw new ForbiddenError('Pages of other sites may not use this address');
    }
  };

  return [
    gateway({
      method: 'GET',
      path: PATH,
      operationId: 'listMcpTools',
      summary: 'List the tools of the MCP endpoint',
      headers: z.object({ accept: z.string().optional(), origin: z.string().optional() }),
      responses: {
        200: z.strictObject({ tools: z.array(shown), count: z.int() }),
        405: z.strictObject({ error: z.string() }),
      },
      errors: [403],
      handler({ headers }) {
        requireOwnOrigin(headers.origin);
        if (headers.accept?.trim() === 'text/event-stream') {
          const error = 'The platform sends no messages of its own: use POST';
          return reply(405, { error }, { Allow: 'POST' });
        }
        return reply(200, { tools: listed, count: listed.length });
      },
    }),
    gateway({
      method: 'POST',
      path: PATH,
      operationId: 'callMcp',
      summary: 'Model Context Protocol, streamable HTTP: without sessions, answers in JSON',
      headers: z.object({
        origin: z.string().optional(),
        'mcp-protocol-version': z.string().optional().describe('The version agreed upon'),
      }),
      body: answers,
      responses: { 200: answers, 202: 'empty' },
      errors: [403],
      errorForm: RPC_ERRORS,
      calls: tools.map(({ endpoint }) => endpoint),
      async handler({ body, call, headers }) {
        requireOwnOrigin(headers.origin);
        const protocolVersion = headers['mcp-protocol-version'];
        const { status, body: answer } = await server.answer({ body, call, protocolVersion, url });
        if (status === 202) return reply(202);
        const known = answers.safeParse(answer);
        if (status === 200 && known.success) return reply(200, known.data);
        throw new ServiceError(status, reasonIn(answer));
      },
    }),
  ];
}

const NAME = 'agent-platform-service';

const refused = z.object({ error: z.object({ message: z.string() }) });

/** Returns the sentence of an error of JSON-RPC. */
function reasonIn(answer: unknown): string {
  return refused.safeParse(answer).data?.error.message ?? 'The request is not valid';
}
