import { isObject, type JsonObject } from '../../src/lib/json.js';
import { KEY_SCOPES, type KeyScope } from '../../src/types/key-scopes.js';
import { KEY_PLACE } from './clients.js';
import type { Tool } from './tool.js';

/** A fault of a configuration; `path` names its place, with dots. */
export interface Finding {
  readonly path: string;
  readonly message: string;
}

export interface CheckedConfig {
  readonly valid: boolean;
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
}

interface Checking {
  /** The address of the MCP endpoint. */
  readonly url: string;
  readonly tools: readonly Tool[];
  /** Returns the scopes of a working API key. */
  readonly scopesOf: (key: string) => Promise<readonly KeyScope[] | undefined>;
}

/** Maximum number of servers of a configuration that are checked: each costs the lookup of a key. */
const MAX_SERVERS = 20;

/** The places of servers in the files of clients, and the names of the transport there. */
const PLACES: readonly Place[] = [
  {
    path: ['mcp', 'servers'],
    field: 'transport',
    accepted: ['streamable-http'],
    client: 'openclaw',
  },
  { path: ['servers'], field: 'type', accepted: ['http'], client: 'vscode' },
  {
    path: ['mcpServers'],
    field: 'type',
    accepted: ['http', 'streamable-http'],
    client: 'claude-code',
  },
];

interface Place {
  readonly path: readonly string[];
  readonly field: 'transport' | 'type';
  readonly accepted: readonly string[];
  readonly client: string;
}

interface Server {
  readonly path: string;
  readonly server: JsonObject;
  readonly place: Place;
}

/**
 * Checks a client's configuration: address, transport, and key with its scopes. No finding repeats a value of the
 * configuration, and no address is contacted.
 */
export async function checkConfig(config: JsonObject, checking: Checking): Promise<CheckedConfig> {
  const found = serversIn(config);
  const [first] = found;
  if (first === undefined) {
    const places = PLACES.map(({ path }) => path.join('.')).join(', ');
    return refused([{ path: '', message: `The configuration has no server: see ${places}` }]);
  }
  if (found.length > MAX_SERVERS) {
    const message = `At most ${MAX_SERVERS} servers are checked`;
    return refused([{ path: first.place.path.join('.'), message }]);
  }
  const ours = found.filter(({ server }) => isSameAddress(server.url, checking.url));
  if (ours.length === 0) {
    return refused(
      found.map(({ path }) => ({ path: `${path}.url`, message: `url must be ${checking.url}` })),
    );
  }
  const checked = await Promise.all(ours.map((each) => checkServer(each, checking)));
  const errors = checked.flatMap((each) => each.errors);
  return { valid: errors.length === 0, errors, warnings: checked.flatMap((each) => each.warnings) };
}

const refused = (errors: readonly Finding[]): CheckedConfig => ({
  valid: false,
  errors,
  warnings: [],
});

function serversIn(config: JsonObject): readonly Server[] {
  return PLACES.flatMap((place) => {
    const servers = place.path.reduce<unknown>(
      (holder, name) => (isObject(holder) ? holder[name] : undefined),
      config,
    );
    return Object.entries(isObject(servers) ? servers : {}).map(([name, server]) => ({
      path: [...place.path, name].join('.'),
      server: isObject(server) ? server : {},
      place,
    }));
  });
}

function isSameAddress(given: unknown, url: string): boolean {
  if (typeof given !== 'string' || !URL.canParse(given)) return false;
  return new URL(given).href === url;
}

async function checkServer(
  { path, place, server }: Server,
  { scopesOf, tools }: Checking,
): Promise<Omit<CheckedConfig, 'valid'>> {
  const transport = transportFault(server, place);
  const key = keyOf(server);
  const errors: Finding[] = [];
  const warnings: Finding[] = [];
  const at = (field: string, message: string): Finding => ({ path: `${path}.${field}`, message });

  if (transport !== undefined) errors.push(at(place.field, transport));
  if (place.client === 'claude-code' && server.type === undefined && transport === undefined) {
    warnings.push(at('type', 'Claude Code needs type "http"; Cursor needs none'));
  }
  const header = 'headers.Authorization';
  if (key.kind === 'missing')
    errors.push(at(header, `Authorization must be "Bearer ${KEY_PLACE}"`));
  else if (key.kind === 'variable') {
    warnings.push(at(header, 'The key is a variable of the client, and is not checked'));
  } else if (key.value === KEY_PLACE) {
    errors.push(at(header, `Replace ${KEY_PLACE} by an API key`));
  } else {
    const scopes = await scopesOf(key.value);
    if (scopes === undefined) errors.push(at(header, 'The key is not a valid API key'));
    else warnings.push(...missingScopes(tools, scopes).map((message) => at(header, message)));
  }
  return { errors, warnings };
}

/** Returns what is wrong with the transport; Cursor finds it by itself. */
function transportFault(
  server: JsonObject,
  { accepted, client, field }: Place,
): string | undefined {
  if (server.command !== undefined)
    return 'A server with a command uses another transport: use url';
  const transport = server[field];
  const isFree = transport === undefined && client !== 'openclaw';
  const isAccepted = typeof transport === 'string' && accepted.includes(transport);
  return isFree || isAccepted ? undefined : `${field} must be ${accepted.join(' or ')}`;
}

type Key =
  | { readonly kind: 'missing' }
  | { readonly kind: 'variable' }
  | { readonly kind: 'value'; readonly value: string };

function keyOf({ headers }: JsonObject): Key {
  const named = Object.entries(isObject(headers) ? headers : {}).find(
    ([name]) => name.toLowerCase() === 'authorization',
  );
  const text = named?.[1];
  if (typeof text !== 'string') return { kind: 'missing' };
  const [, value] = /^bearer\s+(\S+)$/i.exec(text.trim()) ?? [];
  if (/\$\{[^}]+\}/.test(text)) return { kind: 'variable' };
  return value === undefined ? { kind: 'missing' } : { kind: 'value', value };
}

/** Returns a sentence for each scope that the key lacks, with the tools that need the scope. */
function missingScopes(tools: readonly Tool[], scopes: readonly KeyScope[]): readonly string[] {
  return KEY_SCOPES.flatMap((scope) => {
    const needing = tools.filter(({ endpoint }) => endpoint.keyScope === scope);
    if (needing.length === 0 || scopes.includes(scope)) return [];
    const names = needing.map(({ name }) => name).join(', ');
    return [`The key lacks the scope ${scope}, which these tools need: ${names}`];
  });
}
