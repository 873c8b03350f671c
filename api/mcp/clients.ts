import { BadRequestError } from '../../src/lib/errors.js';

/** In place of an API key in configurations. */
export const KEY_PLACE = '<API_KEY>';

export const CLIENT_NAMES = ['openclaw', 'claude-code', 'vscode', 'cursor'] as const;

export type ClientName = (typeof CLIENT_NAMES)[number];

/** Name of this server in the configurations of clients. */
const SERVER = 'agent-platform';

const authorization = { Authorization: `Bearer ${KEY_PLACE}` };

interface Client {
  /** Returns the content of the client's file. */
  readonly configOf: (url: string) => Readonly<Record<string, unknown>>;
  readonly steps: (url: string) => readonly string[];
}

const MAKE_KEY = `Create an API key with the scopes \`agents\` and \`ai\`, and replace ${KEY_PLACE} by this key.`;
const TRY = 'Ask the client to list your agents.';

const CLIENTS: Readonly<Record<ClientName, Client>> = {
  openclaw: {
    configOf: (url) => ({
      mcp: { servers: { [SERVER]: { url, transport: 'streamable-http', headers: authorization } } },
    }),
    steps: () => [MAKE_KEY, 'Merge `config` into `openclaw.json`, and restart the gateway.', TRY],
  },
  'claude-code': {
    configOf: (url) => ({
      mcpServers: { [SERVER]: { type: 'http', url, headers: authorization } },
    }),
    steps: (url) => [
      MAKE_KEY,
      'Save `config` as `.mcp.json` in your project, or run ' +
        `\`claude mcp add --transport http ${SERVER} ${url} --header "Authorization: Bearer ${KEY_PLACE}"\`.`,
      TRY,
    ],
  },
  vscode: {
    configOf: (url) => ({ servers: { [SERVER]: { type: 'http', url, headers: authorization } } }),
    steps: () => [MAKE_KEY, 'Save `config` as `.vscode/mcp.json` in your workspace.', TRY],
  },
  cursor: {
    configOf: (url) => ({ mcpServers: { [SERVER]: { url, headers: authorization } } }),
    steps: () => [MAKE_KEY, 'Save `config` as `.cursor/mcp.json` in your project.', TRY],
  },
};

/** Returns how a client is set up for the endpoint. @throws BadRequestError for an unknown client */
export function setupOf(name: string, url: string) {
  const client = CLIENT_NAMES.find((each) => each === name);
  if (client === undefined) {
    throw new BadRequestError(`client must be one of ${CLIENT_NAMES.join(', ')}`);
  }
  const { configOf, steps } = CLIENTS[client];
  return { client, config: configOf(url), steps: steps(url) };
}
