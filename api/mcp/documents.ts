import type { Package } from '../../src/platform/process/release.js';
import { acceptsApiKeys } from '../auth/key-scope.js';
import { propertiesOf } from '../http/json-schema.js';
import { isObject } from '../../src/lib/json.js';
import { KEY_PLACE } from './clients.js';
import type { Tool } from './tool.js';

/** Returns an example for each tool: the request of JSON-RPC that calls it. */
export function examplesOf(tools: readonly Tool[]) {
  return tools.map(({ description, example, name }) => ({
    tool: name,
    description,
    request: {
      jsonrpc: '2.0' as const,
      id: 1,
      method: 'tools/call' as const,
      params: { name, arguments: example },
    },
  }));
}

/** Returns the description of the endpoint and of its tools in Markdown. */
export function markdownOf(tools: readonly Tool[], url: string): string {
  return [
    '# Agents as tools',
    `MCP clients reach the tools at ${url} by streamable HTTP. Each request has \`Authorization: Bearer ${KEY_PLACE}\`, ` +
      'with an API key. A refusal is a result with `isError: true`, whose text is the error as JSON.',
    'A request with an `Idempotency-Key` header may be repeated: `agents_create`, `agents_chat` and `tasks_create` ' +
      'then act once.',
    ...tools.map(sectionOf),
  ].join('\n\n');
}

function sectionOf({
  annotations,
  description,
  endpoint,
  inputSchema,
  example,
  name,
}: Tool): string {
  const { properties, required } = propertiesOf(inputSchema);
  const rows = Object.entries(properties).map(([argument, schema]) => {
    const { description: text, type } = isObject(schema) ? schema : {};
    const need = required.has(argument) ? 'required' : 'optional';
    return `- \`${argument}\` (${typeof type === 'string' ? `${type}, ` : ''}${need})${typeof text === 'string' ? `: ${text}` : ''}`;
  });
  const scope = acceptsApiKeys(endpoint.auth)
    ? ` The key needs the scope \`${endpoint.keyScope}\`.`
    : '';
  const kind = annotations.readOnlyHint
    ? ' Changes nothing.'
    : annotations.destructiveHint
      ? ' Destructive: interrupts the agent or removes data.'
      : '';
  return [
    `## ${name}`,
    `${description}${kind}${scope}`,
    ...(rows.length > 0 ? [rows.join('\n')] : []),
    `Example: \`${JSON.stringify(example)}\``,
  ].join('\n\n');
}

/** Schema of registries for `server.json`. */
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';

/** The longest description that registries accept. */
const MAX_DESCRIPTION = 100;

/** Returns the `server.json` by which a registry lists this installation. */
export function serverJson({ description, name, repository, version }: Package, url: string) {
  const { hostname } = new URL(url);
  return {
    $schema: SCHEMA,
    name: `${hostname.split('.').toReversed().join('.')}/${name}`,
    description: description.slice(0, MAX_DESCRIPTION),
    version,
    ...(repository !== null && { repository: { url: repository, source: 'git' } }),
    remotes: [
      {
        type: 'streamable-http',
        url,
        headers: [
          {
            name: 'Authorization',
            description: 'Bearer and an API key of the platform',
            value: 'Bearer {api_key}',
            variables: { api_key: { description: 'API key', isRequired: true, isSecret: true } },
            isRequired: true,
            isSecret: true,
          },
        ],
      },
    ],
  };
}
