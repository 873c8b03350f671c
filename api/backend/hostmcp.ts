import * as z from 'zod';
import { ForbiddenError, ServiceError } from '../../src/lib/errors.js';
import { readPackage, type Package } from '../../src/platform/process/release.js';
import { bearer, userIdOf } from '../auth/bearer.js';
import { area } from '../http/area.js';
import type { Endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { checkConfig } from '../mcp/check-config.js';
import { CLIENT_NAMES, setupOf } from '../mcp/clients.js';
import { examplesOf, markdownOf, serverJson } from '../mcp/documents.js';
import { RPC_ERRORS } from '../mcp/error-form.js';
import { shownTool } from '../mcp/tool.js';
import { mcpTools } from '../mcp/tools.js';
import type { BackendDependencies } from './dependencies.js';
import { MCP_CONFIGS_LIMIT } from './limits.js';

const PATH = '/api/hostmcp';
const TOOLS_PATH = `${PATH}/tools`;

const gateway = area({ tag: 'MCP', auth: bearer, keyScope: 'any' });

const UNKNOWN: Package = {
  name: 'agent-platform-service',
  version: 'unknown',
  description: '',
  repository: null,
  commit: null,
};

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

const messages = z.union([message, z.array(message).min(1)]);

const setup = z
  .strictObject({
    client: z.enum(CLIENT_NAMES),
    config: z.looseObject({}).describe("The client's file"),
    steps: z.array(z.string()),
  })
  .meta({ id: 'McpSetup' });

const findings = z.array(z.strictObject({ path: z.string(), message: z.string() }));

const clientQuery = z.strictObject({
  client: z
    .string()
    .max(64)
    .optional()
    .describe(`One of ${CLIENT_NAMES.join(', ')}`),
});

const none = z.strictObject({});

/** A path whose POST is its GET with the query in the body. */
interface Shown<R extends z.ZodType> {
  readonly name: string;
  readonly operationId: string;
  readonly summary: string;
  readonly answer: R;
}

/** Creates `/api/hostmcp/*` (spec 4.15): agents as tools of the Model Context Protocol. */
export function hostMcpEndpoints(
  dependencies: BackendDependencies,
  backend: readonly Endpoint[],
): readonly Endpoint[] {
  const { ai, apiKeys, platformHealth, refusals } = dependencies;
  const { http } = dependencies.settings;
  const tools = mcpTools(dependencies, backend);
  const listed = tools.map(shownTool);
  const url = new URL(TOOLS_PATH, http.backendPublicUrl).href;
  const program = readPackage() ?? UNKNOWN;
  const { name, version } = program;
  // Loaded with the first request: a platform without MCP clients does not pay for the library.
  let loading: ReturnType<typeof load> | undefined;
  const load = async () => {
    const { McpGateway, PROTOCOL_VERSIONS } = await import('../mcp/server.js');
    return { server: new McpGateway(tools, { name, version }), versions: PROTOCOL_VERSIONS };
  };
  const origins = new Set(
    [http.webUrl, http.backendUrl, http.backendPublicUrl].map((each) => new URL(each).origin),
  );

  /** Refuses pages of other sites, which a person's browser may let reach this address. */
  const requireOwnOrigin = (origin: string | undefined) => {
    if (origin !== undefined && !origins.has(origin)) {
      throw new ForbiddenError('Pages of other sites may not use this address');
    }
  };

  /** Declares GET and POST of a path that needs no input. */
  const both = <R extends z.ZodType>(
    { answer, name: last, operationId, summary }: Shown<R>,
    read: () => Promise<z.input<R>> | z.input<R>,
  ): Endpoint[] => {
    const path = `${PATH}/${last}`;
    const handler = async () => reply(200, await read());
    const responses: { readonly 200: z.ZodType } = { 200: answer };
    return [
      gateway({ method: 'GET', path, operationId, summary, responses, handler }),
      gateway({
        method: 'POST',
        path,
        operationId: `${operationId}ByPost`,
        summary: `${summary}, as by GET`,
        body: none.optional(),
        responses,
        handler,
      }),
    ];
  };

  const setupAnswer = ({ client }: z.output<typeof clientQuery>) =>
    reply(
      200,
      client === undefined
        ? { clients: CLIENT_NAMES.map((each) => setupOf(each, url)) }
        : setupOf(client, url),
    );
  const setupResponses = { 200: z.union([setup, z.strictObject({ clients: z.array(setup) })]) };

  return [
    gateway({
      method: 'GET',
      path: TOOLS_PATH,
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
      path: TOOLS_PATH,
      operationId: 'callMcp',
      summary:
        'Call tools by the Model Context Protocol, streamable HTTP: without sessions, answers in JSON',
      headers: z.object({
        origin: z.string().optional(),
        'mcp-protocol-version': z.string().optional().describe('The negotiated version'),
      }),
      body: messages,
      responses: { 200: messages, 202: 'empty' },
      errors: [403],
      errorForm: RPC_ERRORS,
      calls: tools.map(({ endpoint }) => endpoint),
      async handler({ body, call, caller, headers }) {
        requireOwnOrigin(headers.origin);
        const userId = userIdOf(caller);
        const protocolVersion = headers['mcp-protocol-version'];
        const { server } = await (loading ??= load());
        const request = { body, call, protocolVersion, url };
        const { body: answer, status, tools } = await server.answer(request);
        // The operator's own programs have no user for whom calls could count.
        if (userId !== undefined && tools.length > 0) {
          // One record, however many messages a request has.
          ai.meter.recordTools({ userId, endpoint: TOOLS_PATH, tools });
        }
        if (status === 202) return reply(202);
        const known = messages.safeParse(answer);
        if (status === 200 && known.success) return reply(200, known.data);
        throw new ServiceError(status, reasonIn(answer));
      },
    }),
    ...both(
      {
        name: 'health',
        operationId: 'getMcpHealth',
        summary: 'Check database, Temporal and hosts',
        answer: z.strictObject({
          status: z.enum(['ok', 'degraded']),
          checks: z.record(
            z.enum(['database', 'temporal', 'hosts']),
            z.strictObject({ ok: z.boolean() }),
          ),
          timestamp: z.iso.datetime(),
        }),
      },
      async () => {
        const { checks, ready } = await platformHealth.read();
        // Reasons name addresses of the operator's network.
        const isOk = (check: string) => ({ ok: checks[check]?.ok === true });
        return {
          status: ready ? ('ok' as const) : ('degraded' as const),
          checks: {
            database: isOk('database'),
            temporal: isOk('temporal'),
            hosts: isOk('hosts'),
          },
          timestamp: new Date().toISOString(),
        };
      },
    ),
    ...both(
      {
        name: 'info',
        operationId: 'getMcpInfo',
        summary: 'Get address and versions of the MCP endpoint',
        answer: z.strictObject({
          name: z.string(),
          version: z.string(),
          protocolVersions: z.array(z.string()),
          transport: z.literal('streamable-http'),
          endpoint: z.url(),
        }),
      },
      async () => {
        const { versions } = await (loading ??= load());
        const protocolVersions = [...versions];
        const transport = 'streamable-http' as const;
        return { name, version, protocolVersions, transport, endpoint: url };
      },
    ),
    gateway({
      method: 'GET',
      path: `${PATH}/setup`,
      operationId: 'getMcpSetup',
      summary: 'Get the configuration of an MCP client, or of all known ones',
      query: clientQuery,
      responses: setupResponses,
      handler: ({ query }) => setupAnswer(query),
    }),
    gateway({
      method: 'POST',
      path: `${PATH}/setup`,
      operationId: 'getMcpSetupByPost',
      summary: 'Get the configuration of an MCP client, as by GET',
      body: clientQuery.default({}),
      responses: setupResponses,
      handler: ({ body }) => setupAnswer(body),
    }),
    ...both(
      {
        name: 'examples',
        operationId: 'listMcpExamples',
        summary: 'List a request of each tool',
        answer: z.strictObject({
          examples: z.array(
            z
              .strictObject({
                tool: z.string(),
                description: z.string(),
                request: z.looseObject({}),
              })
              .meta({ id: 'McpExample' }),
          ),
        }),
      },
      () => ({ examples: examplesOf(tools) }),
    ),
    ...both(
      {
        name: 'docs',
        operationId: 'getMcpDocs',
        summary: 'Describe the tools',
        answer: z.strictObject({ format: z.literal('markdown'), content: z.string() }),
      },
      () => ({ format: 'markdown' as const, content: markdownOf(tools, url) }),
    ),
    ...both(
      {
        name: 'github',
        operationId: 'getMcpSource',
        summary: 'Get repository, version and entry for MCP registries',
        answer: z.strictObject({
          repository: z.string().nullable(),
          version: z.string(),
          commit: z.string().nullable(),
          server: z.looseObject({}).describe('`server.json`'),
        }),
      },
      () => {
        const { commit, repository } = program;
        return { repository, version, commit, server: serverJson(program, url) };
      },
    ),
    gateway({
      method: 'POST',
      path: `${PATH}/validate-config`,
      operationId: 'validateMcpConfig',
      summary: 'Check the configuration of an MCP client: transport, address, key and its scopes',
      limitOfCaller: MCP_CONFIGS_LIMIT,
      body: z.strictObject({ config: z.looseObject({}) }),
      responses: {
        200: z.strictObject({ valid: z.boolean(), errors: findings, warnings: findings }),
      },
      async handler({ body, clientAddress }) {
        const scopesOf = async (key: string) => {
          const found = await apiKeys.find(key);
          if (found) return found.scopes;
          refusals.note({ action: 'key.refused', subject: 'backend', address: clientAddress });
          return undefined;
        };
        return reply(200, await checkConfig(body.config, { url, tools, scopesOf }));
      },
    }),
  ];
}

const refused = z.object({ error: z.object({ message: z.string() }) });

/** Returns the sentence of an error of JSON-RPC. */
function reasonIn(answer: unknown): string {
  return refused.safeParse(answer).data?.error.message ?? 'The request is not valid';
}
