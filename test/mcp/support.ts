import { randomUUID } from 'node:crypto';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { createApiKey } from '../../src/accounts/accounts/api-keys.js';
import type { Database } from '../../src/platform/database/database.js';
import { KEY_SCOPES, type KeyScope } from '../../src/types/key-scopes.js';
import { newAddress } from '../support/http.js';

export const TOOLS_PATH = '/api/hostmcp/tools';

/** The result of a tool: its text, parsed where it is JSON. */
export interface ToolResult {
  readonly isError: boolean;
  readonly texts: readonly string[];
  /** Untyped, so that tests read it directly. */
  readonly body: ReturnType<typeof JSON.parse>;
}

/** A client of the SDK that has introduced itself. */
export interface McpClient {
  readonly client: Client;
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<ToolResult>;
  close(): Promise<void>;
}

/** Connects the SDK's own client to the backend, from an address of its own. */
export async function mcpClient(
  backendUrl: string,
  headers: Readonly<Record<string, string>>,
): Promise<McpClient> {
  const client = new Client({ name: 'a test', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL(TOOLS_PATH, backendUrl), {
    requestInit: { headers: { 'x-forwarded-for': newAddress(), ...headers } },
  });
  await client.connect(transport);
  return {
    client,
    async call(name, args = {}) {
      return resultOf(await client.callTool({ name, arguments: args }));
    },
    close: () => client.close(),
  };
}

/** Reads the result of `tools/call`. */
export function resultOf(answer: unknown): ToolResult {
  const { content, isError = false } = CallToolResultSchema.parse(answer);
  const texts = content.map((each) => (each.type === 'text' ? each.text : each.type));
  return { isError, texts, body: JSON.parse(texts[0] ?? 'null') };
}

/** Makes an API key of a user. @returns the headers that show it */
export async function keyOf(
  database: Database,
  userId: string,
  scopes: readonly KeyScope[] = KEY_SCOPES,
) {
  const by = { userId, requestId: randomUUID() };
  const { key } = await createApiKey(database, by, { name: 'a key', scopes, site: userId });
  return { key, authorization: `Bearer ${key}` };
}
