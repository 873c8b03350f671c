import { isDeepStrictEqual } from 'node:util';
import { isObject, type JsonObject } from '../../lib/json.js';
import { GATEWAY_PORT, STATE_DIRECTORY } from './container-spec.js';
import { channelConfig, tokenPaths } from './openclaw-channels.js';

/** OpenClaw's state folder, relative to the state volume. */
export const STATE_FOLDER = '.openclaw';

/** Path segments from the state volume to the agent's workspace. */
export const WORKSPACE_FOLDERS = [STATE_FOLDER, 'workspace'];

/** OpenClaw's folder of skills that belong to no workspace. */
export const SKILLS_FOLDER = `${STATE_FOLDER}/skills`;

export const CONFIG_FILE = `${STATE_FOLDER}/openclaw.json`;

/** The file of variables that OpenClaw loads at startup. */
export const SECRETS_FILE = `${STATE_FOLDER}/.env`;

/**
 * Paths of only one agent, by OpenClaw's layout: tokens, credentials, its identity, its conversations, and
 * locks, since a gateway refuses to start on state that another still holds.
 */
const OF_ONE_AGENT = new RegExp(
  String.raw`^\.openclaw/(?:\.env|credentials|identity|devices|state|tmp|config-journal-fingerprint\.key` +
    String.raw`|agents/[^/]+/(?:sessions|agent/(?:auth|openclaw-agent\.sqlite)[^/]*))(?:/|$)`,
);

/** Reports whether a path within the state belongs to only one agent. */
export const isOfOneAgent = (path: string): boolean => OF_ONE_AGENT.test(path);

/**
 * The host and origin by which the agent's address speaks for its owner. OpenClaw treats both as its own
 * machine, where the gateway token suffices to approve a new device.
 */
export const GATEWAY_HOST = `localhost:${GATEWAY_PORT}`;
export const GATEWAY_ORIGIN = `http://127.0.0.1:${GATEWAY_PORT}`;

/**
 * No lock-out after wrong tokens: every connection comes from the bridge's address, so that one stranger would
 * lock out the platform and the owner. The token has 256 random bits.
 */
const NO_LOCK_OUT = { maxAttempts: 1_000_000, windowMs: 1_000, lockoutMs: 1 };

export interface OpenClawOptions {
  /** Address of the agents' AI listener as containers reach it, including `/v1`. */
  readonly aiBaseUrl: string;
  /** Id of the model requested from the AI listener. */
  readonly model: string;
  /** Sizes of the model in tokens, if it is smaller than the runtime assumes. */
  readonly sizes?: { readonly contextWindow: number; readonly maxOutput: number } | undefined;
  /** The user's own settings (`config.runtime`); the platform's settings override them. */
  readonly userConfig?: unknown;
  /** Names of the agent's credentials: channels whose tokens are among them are set up. */
  readonly variables?: ReadonlySet<string>;
}

/** The runtime's own limits for a model unknown to it. */
const CONTEXT_WINDOW = 128_000;
const MAX_TOKENS = 8_192;

/**
 * Builds `openclaw.json`: the gateway's listener, and the platform as the only model provider. It refers to
 * secrets by variable name, so it contains none.
 */
export function openClawConfig(options: OpenClawOptions): string {
  const user = isObject(options.userConfig) ? options.userConfig : {};
  const platform = {
    ...platformConfig(options),
    ...channelConfig(options.variables ?? new Set(), user),
  };
  // `gateway` and `models` belong to the platform entirely; the user's are dropped, not merged.
  const { gateway: _gateway, models: _models, ...others } = user;
  return `${JSON.stringify(merge(others, platform), null, 2)}\n`;
}

function platformConfig({ aiBaseUrl, model, sizes }: OpenClawOptions) {
  return {
    gateway: {
      mode: 'local',
      port: GATEWAY_PORT,
      bind: 'lan',
      auth: { mode: 'token', token: '${OPENCLAW_GATEWAY_TOKEN}', rateLimit: NO_LOCK_OUT },
      // The agent's address compares the browser's origin with the host name, and names this one instead.
      controlUi: { enabled: true, allowedOrigins: [GATEWAY_ORIGIN] },
      http: { endpoints: { chatCompletions: { enabled: true } } },
    },
    models: {
      mode: 'replace',
      providers: {
        platform: {
          baseUrl: aiBaseUrl,
          apiKey: '${PLATFORM_AI_TOKEN}',
          api: 'openai-completions',
          models: [
            {
              id: model,
              name: model,
              reasoning: false,
              input: ['text'],
              cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
              contextWindow: Math.min(CONTEXT_WINDOW, sizes?.contextWindow ?? CONTEXT_WINDOW),
              maxTokens: Math.min(MAX_TOKENS, sizes?.maxOutput ?? MAX_TOKENS),
            },
          ],
        },
      },
    },
    agents: { defaults: { model: { primary: `platform/${model}` } } },
    // The platform controls the version: the image is pinned and read-only.
    update: { checkOnStart: false },
  };
}

/** Sections and settings of `openclaw.json` that belong to the platform. */
const PLATFORMS = [
  ['gateway'],
  ['models'],
  ['agents', 'defaults', 'model', 'primary'],
  ['update', 'checkOnStart'],
];

/** Returns the platform's part of the configuration that it would write, by dotted paths. */
export function platformPart(wanted: unknown): Record<string, unknown> {
  return partAt(wanted, platformPaths(wanted));
}

/** Returns the paths of the platform's part in which a configuration differs from the wanted one. */
export function platformDifferences(found: unknown, wanted: unknown): string[] {
  const paths = platformPaths(wanted);
  const [here, there] = [partAt(found, paths), partAt(wanted, paths)];
  return Object.keys(there).filter((path) => !isDeepStrictEqual(here[path], there[path]));
}

const platformPaths = (wanted: unknown): string[][] => [...PLATFORMS, ...tokenPaths(wanted)];

function partAt(config: unknown, paths: readonly string[][]): Record<string, unknown> {
  return Object.fromEntries(paths.map((path) => [path.join('.'), valueAt(config, path)]));
}

function valueAt(config: unknown, path: readonly string[]): unknown {
  let value = config;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** Returns the variables that the configuration refers to. Their values are secrets: never log them. */
export const openClawSecrets = (tokens: {
  readonly gatewayToken: string;
  readonly aiToken: string;
}) => ({ OPENCLAW_GATEWAY_TOKEN: tokens.gatewayToken, PLATFORM_AI_TOKEN: tokens.aiToken });

/** Returns the environment of an OpenClaw container; it contains no secrets. */
export function openClawEnvironment(): Record<string, string> {
  const state = `${STATE_DIRECTORY}/${STATE_FOLDER}`;
  return {
    HOME: STATE_DIRECTORY,
    OPENCLAW_HOME: STATE_DIRECTORY,
    OPENCLAW_STATE_DIR: state,
    OPENCLAW_CONFIG_PATH: `${STATE_DIRECTORY}/${CONFIG_FILE}`,
    OPENCLAW_WORKSPACE_DIR: `${STATE_DIRECTORY}/${WORKSPACE_FOLDERS.join('/')}`,
    XDG_CACHE_HOME: `${state}/cache`,
    // No mDNS client exists on a bridge with a single container.
    OPENCLAW_DISABLE_BONJOUR: '1',
    OPENCLAW_NO_AUTO_UPDATE: '1',
    // Below the container's memory limit, so that the heap limit is reached first.
    NODE_OPTIONS: '--max-old-space-size=2560',
  };
}

/** Merges objects recursively; any other value of `winner` replaces that of `base`. */
function merge(base: JsonObject, winner: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(winner)) {
    const below = Object.hasOwn(base, key) ? base[key] : undefined;
    merged[key] = isObject(value) ? merge(isObject(below) ? below : {}, value) : value;
  }
  return merged;
}
