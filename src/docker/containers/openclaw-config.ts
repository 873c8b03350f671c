import { isObject, type JsonObject } from '../../lib/json.js';
import { GATEWAY_PORT, STATE_DIRECTORY } from './container-spec.js';

/** Where OpenClaw keeps its state, relative to the state volume. */
const STATE_FOLDER = '.openclaw';

/** The folders, from the state volume on, to where the agent works. */
export const WORKSPACE_FOLDERS = [STATE_FOLDER, 'workspace'];

/** The configuration file, relative to the state volume. */
export const CONFIG_FILE = `${STATE_FOLDER}/openclaw.json`;

/** The file of variables that OpenClaw adds to its environment when it starts, as above. */
export const SECRETS_FILE = `${STATE_FOLDER}/.env`;

/**
 * What of the state is one agent's alone, by its path: its tokens and credentials, what it is known by to
 * others, what was said to it, and who runs on it: a gateway starts on no state that another one still has.
 * Patterns of OpenClaw's own layout, whose databases have several of these.
 */
const OF_ONE_AGENT = new RegExp(
  String.raw`^\.openclaw/(?:\.env|credentials|identity|devices|state|tmp|config-journal-fingerprint\.key` +
    String.raw`|agents/[^/]+/(?:sessions|agent/(?:auth|openclaw-agent\.sqlite)[^/]*))(?:/|$)`,
);

/** Whether no other agent may have it. @param path within the state. */
export const isOfOneAgent = (path: string): boolean => OF_ONE_AGENT.test(path);

export interface OpenClawOptions {
  /** The agents' AI listener as containers reach it, up to and with `/v1`. */
  readonly aiBaseUrl: string;
  /** Id of the model that the AI listener is asked for. */
  readonly model: string;
  /** The user's own settings (`config.runtime`); what the platform decides wins over them. */
  readonly userConfig?: unknown;
}

/** The runtime's own limits of a model that it cannot know. */
const CONTEXT_WINDOW = 128_000;
const MAX_TOKENS = 8_192;

/**
 * The content of `openclaw.json`: how the gateway listens, and that its only model provider is the
 * platform. It names the variables that hold the secrets, and so holds none itself.
 */
export function openClawConfig(options: OpenClawOptions): string {
  const user = isObject(options.userConfig) ? options.userConfig : {};
  const platform = platformConfig(options);
  // `gateway` and `models` are the platform's as a whole: nothing of the user's is merged there.
  const { gateway: _gateway, models: _models, ...others } = user;
  return `${JSON.stringify(merge(others, platform), null, 2)}\n`;
}

function platformConfig({ aiBaseUrl, model }: OpenClawOptions) {
  return {
    gateway: {
      mode: 'local',
      port: GATEWAY_PORT,
      bind: 'lan',
      auth: { mode: 'token', token: '${OPENCLAW_GATEWAY_TOKEN}' },
      controlUi: { enabled: false },
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
              contextWindow: CONTEXT_WINDOW,
              maxTokens: MAX_TOKENS,
            },
          ],
        },
      },
    },
    agents: { defaults: { model: { primary: `platform/${model}` } } },
    // The platform decides the version: the image is pinned and read-only.
    update: { checkOnStart: false },
  };
}

/** The variables that its configuration names. Their values are secrets: pass them on, log none. */
export const openClawSecrets = (tokens: {
  readonly gatewayToken: string;
  readonly aiToken: string;
}) => ({ OPENCLAW_GATEWAY_TOKEN: tokens.gatewayToken, PLATFORM_AI_TOKEN: tokens.aiToken });

/** The environment of an OpenClaw container, with no secret in it. */
export function openClawEnvironment(): Record<string, string> {
  const state = `${STATE_DIRECTORY}/${STATE_FOLDER}`;
  return {
    HOME: STATE_DIRECTORY,
    OPENCLAW_HOME: STATE_DIRECTORY,
    OPENCLAW_STATE_DIR: state,
    OPENCLAW_CONFIG_PATH: `${STATE_DIRECTORY}/${CONFIG_FILE}`,
    OPENCLAW_WORKSPACE_DIR: `${STATE_DIRECTORY}/${WORKSPACE_FOLDERS.join('/')}`,
    XDG_CACHE_HOME: `${state}/cache`,
    // Nobody on a bridge of one container looks for it by mDNS.
    OPENCLAW_DISABLE_BONJOUR: '1',
    OPENCLAW_NO_AUTO_UPDATE: '1',
    // Below the container's memory, so that the heap's end comes before the container's.
    NODE_OPTIONS: '--max-old-space-size=2560',
  };
}

/** Objects are merged, anything else of `winner` replaces what is there. */
function merge(base: JsonObject, winner: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(winner)) {
    const below = Object.hasOwn(base, key) ? base[key] : undefined;
    merged[key] = isObject(value) ? merge(isObject(below) ? below : {}, value) : value;
  }
  return merged;
}
