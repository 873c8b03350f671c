import { readFileSync } from 'node:fs';
import { homedir, platform } from 'node:os';
import path from 'node:path';
import { AGENT_RUNTIME_VERSION } from './agents/settings.js';
import { BlockList, isIP } from 'node:net';
import type { WatchdogSettings } from './agents/watchdog.js';
import {
  PROVIDER_BASE_URLS,
  isProviderName,
  type ProviderConfig,
  type ProviderName,
} from './ai/provider-names.js';
import type { TelegramSettings } from './notifications/telegram.js';

/** Every problem with the environment, told in one report. Never holds a secret's value. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(
      `The environment is not usable:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    );
    this.name = 'ConfigError';
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads typed values and collects what is wrong with them instead of stopping at the first. */
class EnvironmentReader {
  readonly problems: string[] = [];

  constructor(private readonly env: Environment) {}

  text(name: string, fallback: string): string;
  text(name: string): string | undefined;
  text(name: string, fallback?: string): string | undefined {
    const value = this.env[name]?.trim();
    return value ? value : fallback;
  }

  required(name: string): string {
    const value = this.secret(name);
    if (value === undefined) this.problems.push(`${name} is missing`);
    return value ?? '';
  }

  /** The variable, or the content of the file that `<name>_FILE` names. */
  secret(name: string): string | undefined {
    const file = this.text(`${name}_FILE`);
    if (file === undefined) return this.text(name);
    try {
      return readFileSync(file, 'utf8').trim() || undefined;
    } catch {
      this.problems.push(`${name}_FILE names a file that cannot be read`);
      return undefined;
    }
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const value = this.text(name);
    if (value === undefined) return fallback;
    const found = choices.find((choice) => choice === value);
    if (found === undefined) this.problems.push(`${name} must be one of ${choices.join(', ')}`);
    return found ?? fallback;
  }

  boolean(name: string, fallback: boolean): boolean {
    return this.choice(name, ['true', 'false'], fallback ? 'true' : 'false') === 'true';
  }

  port(name: string, fallback: number): number {
    const value = this.text(name);
    if (value === undefined) return fallback;
    const port = Number(value);
    if (/^\d+$/.test(value) && port <= 65535) return port;
    this.problems.push(`${name} must be a port from 0 to 65535`);
    return fallback;
  }

  url(name: string, protocols: readonly string[]): string | undefined;
  url(name: string, protocols: readonly string[], fallback: string): string;
  url(name: string, protocols: readonly string[], fallback?: string): string | undefined {
    return this.checkUrl(name, this.text(name), protocols) ?? fallback;
  }

  requiredUrl(name: string, protocols: readonly string[]): string {
    return this.checkUrl(name, this.required(name) || undefined, protocols) ?? '';
  }

  /** An address that may hold a password, and so may come from a file. */
  secretUrl(name: string, protocols: readonly string[]): string | undefined {
    return this.checkUrl(name, this.secret(name), protocols);
  }

  /** Milliseconds, written as seconds (`120`) or with a unit (`500ms`, `120s`, `5m`). */
  duration(name: string, fallbackMs: number): number {
    const value = this.text(name);
    if (value === undefined) return fallbackMs;
    const match = /^(\d+)(ms|s|m)?$/.exec(value);
    const ms = Number(match?.[1]) * { ms: 1, s: 1_000, m: 60_000 }[match?.[2] ?? 's']!;
    if (match && ms > 0) return ms;
    this.problems.push(`${name} must be a positive number of seconds, or like 500ms, 120s or 5m`);
    return fallbackMs;
  }

  /** A whole number, from 1 to 100 unless said otherwise. */
  count(name: string, fallback: number, { least = 1, most = 100 } = {}): number {
    const value = this.text(name);
    if (value === undefined) return fallback;
    const count = Number(value);
    if (/^\d+$/.test(value) && count >= least && count <= most) return count;
    this.problems.push(`${name} must be a whole number from ${least} to ${most}`);
    return fallback;
  }

  /** A name that is part of other names, such as a task queue's. */
  label(name: string, fallback: string): string {
    const value = this.text(name, fallback);
    if (/^[a-z0-9][a-z0-9-]{0,62}$/.test(value)) return value;
    this.problems.push(
      `${name} must be 1 to 63 lower-case letters, digits and dashes, and not begin with a dash`,
    );
    return fallback;
  }

  private checkUrl(name: string, value: string | undefined, protocols: readonly string[]) {
    if (value === undefined) return undefined;
    const protocol = URL.canParse(value) ? new URL(value).protocol.slice(0, -1) : '';
    if (protocols.includes(protocol)) return value.replace(/\/+$/, '');
    this.problems.push(
      `${name} must be an address that starts with ${protocols.join(':// or ')}://`,
    );
    return undefined;
  }
}

/** Everything the product reads from its environment, in one checked object. */
export type Config = ReturnType<typeof loadConfig>;

/**
 * Reads and checks the whole environment once.
 *
 * @throws ConfigError with every problem found.
 */
export function loadConfig(env: Environment = process.env) {
  const read = new EnvironmentReader(env);
  const production = env.NODE_ENV === 'production';
  const host = read.text('HOST', '127.0.0.1');
  const webPort = read.port('WEB_PORT', 3000);
  const backendPort = read.port('BACKEND_PORT', 3001);
  const ports = readPortRange(read);
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;

  const config = {
    production,
    host,
    webPort,
    backendPort,
    webUrl: read.url('WEB_URL', ['http', 'https'], `http://${reachable}:${webPort}`),
    backendUrl: read.url('BACKEND_URL', ['http', 'https'], `http://${reachable}:${backendPort}`),
    trustedProxies: readTrustedProxies(read),

    databaseUrl: read.requiredUrl('DATABASE_URL', ['postgres', 'postgresql']),
    databaseOwnerUrl: read.secretUrl('DATABASE_OWNER_URL', ['postgres', 'postgresql']),
    redisUrl: read.secretUrl('REDIS_URL', ['redis', 'rediss']),
    temporalUiUrl: read.url('TEMPORAL_UI_URL', ['http', 'https']),

    dockerHost: read.url('DOCKER_HOST', ['unix', 'tcp', 'http', 'https', 'npipe']),
    agentRuntimeImage: read.text('AGENT_RUNTIME_IMAGE'),
    agentRuntimeVersion: read.text('AGENT_RUNTIME_VERSION', AGENT_RUNTIME_VERSION),
    agentHost: read.label('AGENT_HOST', 'local'),
    agentHostCapacity: read.count('AGENT_HOST_CAPACITY', ports.last - ports.first + 1, {
      least: 0,
      most: 65_535,
    }),
    agentPortRange: ports,
    agentSubnets: readSubnetPool(read),
    agentAiHost: read.text('AGENT_AI_HOST'),
    agentAiPort: read.port('AGENT_AI_PORT', 3002),
    agentDomain: read.text('AGENT_DOMAIN', 'localhost'),
    provisioningEnabled: read.boolean('PROVISIONING_ENABLED', true),

    internalApiKey: read.secret('INTERNAL_API_KEY'),
    adminEmails: splitList(read.text('ADMIN_EMAILS', '')).map((email) => email.toLowerCase()),
    encryptionKey: readEncryptionKey(read),
    sessionCookieSecure: read.boolean('SESSION_COOKIE_SECURE', production),
    botDetection: read.boolean('BOT_DETECTION', production),

    aiProvider: readAiProvider(read),
    providers: readProviders(read),
    aiTrustHeaders: readTrustHeaders(read, production),
    aiModelTimeoutMs: read.count('AI_MODEL_TIMEOUT_MS', 30_000, { most: 600_000 }),

    watchdogCheckIntervalMs: read.duration('WATCHDOG_CHECK_INTERVAL', 120_000),
    watchdog: {
      startupFailureThreshold: read.count('WATCHDOG_STARTUP_FAILURE_THRESHOLD', 3),
      maxRepairAttempts: read.count('WATCHDOG_MAX_REPAIR_ATTEMPTS', 2),
      crashLoopWindowMs: read.duration('WATCHDOG_CRASH_LOOP_WINDOW', 5 * 60_000),
      crashLoopThreshold: read.count('WATCHDOG_CRASH_LOOP_THRESHOLD', 3),
      degradedCheckIntervalMs: read.duration('WATCHDOG_DEGRADED_CHECK_INTERVAL', 5_000),
      autoRepair: read.boolean('WATCHDOG_AUTO_REPAIR', true),
    } satisfies WatchdogSettings,

    telegram: readTelegram(read),
    discordWebhookUrl: read.secretUrl('DISCORD_WEBHOOK_URL', ['http', 'https']),

    dataDir: read.text('DATA_DIR', '.data'),
    cacheDir: read.text('CACHE_DIR', defaultCacheDir(env)),
    metricsPort: read.port('METRICS_PORT', 9464),
    logLevel: read.choice('LOG_LEVEL', ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  } as const;

  if (production && config.internalApiKey === undefined) {
    read.problems.push('INTERNAL_API_KEY is missing');
  }
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return config;
}

function splitList(value: string): string[] {
  return value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

function readTrustedProxies(read: EnvironmentReader): BlockList {
  const proxies = new BlockList();
  for (const entry of splitList(read.text('TRUSTED_PROXIES', ''))) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    const bits = Number(prefix ?? (family === 'ipv6' ? 128 : 32));
    try {
      proxies.addSubnet(address, bits, family);
    } catch {
      read.problems.push('TRUSTED_PROXIES must be addresses or networks, separated by commas');
    }
  }
  return proxies;
}

function readPortRange(read: EnvironmentReader): { first: number; last: number } {
  const match = /^(\d+)-(\d+)$/.exec(read.text('AGENT_PORT_RANGE', '19100-19999'));
  const range = { first: Number(match?.[1]), last: Number(match?.[2]) };
  if (match && range.first >= 1024 && range.last <= 65535 && range.first <= range.last)
    return range;
  read.problems.push('AGENT_PORT_RANGE must be like 19100-19999, within 1024 and 65535');
  return { first: 19100, last: 19999 };
}

/** The private /16 out of which every agent's own network takes a /28. */
function readSubnetPool(read: EnvironmentReader): string {
  const value = read.text('AGENT_SUBNET_POOL', '10.231.0.0/16');
  if (/^\d{1,3}\.\d{1,3}\.0\.0\/16$/.test(value) && isIP(value.split('/')[0] ?? '') === 4)
    return value;
  read.problems.push('AGENT_SUBNET_POOL must be a /16 network like 10.231.0.0/16');
  return '10.231.0.0/16';
}

/** 32 bytes that wrap the data keys of all secrets at rest. */
function readEncryptionKey(read: EnvironmentReader): Buffer {
  const value = read.required('ENCRYPTION_KEY');
  const key = Buffer.from(value, 'base64');
  if (value !== '' && key.length !== 32) {
    read.problems.push('ENCRYPTION_KEY must be 32 bytes in base64 (openssl rand -base64 32)');
  }
  return key;
}

function readAiProvider(read: EnvironmentReader): ProviderName {
  const value = read.text('AI_PROVIDER', 'openrouter');
  if (isProviderName(value)) return value;
  read.problems.push(`AI_PROVIDER must be one of ${Object.keys(PROVIDER_BASE_URLS).join(', ')}`);
  return 'openrouter';
}

/** Whether callers on this machine without a key are who their headers say. */
function readTrustHeaders(read: EnvironmentReader, production: boolean): 'loopback' | 'never' {
  const fallback = production ? 'never' : 'loopback';
  const value = read.choice('AI_TRUST_HEADERS', ['loopback', 'never'], fallback);
  if (production && value !== 'never') {
    read.problems.push('AI_TRUST_HEADERS must be never in production');
  }
  return value;
}

function readProviders(read: EnvironmentReader): Partial<Record<ProviderName, ProviderConfig>> {
  const providers: Partial<Record<ProviderName, ProviderConfig>> = {};
  for (const [name, defaultBaseUrl] of Object.entries(PROVIDER_BASE_URLS)) {
    if (!isProviderName(name)) continue;
    const prefix = name.toUpperCase();
    const apiKey = read.secret(`${prefix}_API_KEY`);
    const baseUrl = read.url(`${prefix}_BASE_URL`, ['http', 'https']);
    // What no header can hold would be quoted by the error of whoever tries to send it.
    if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
      read.problems.push(`${prefix}_API_KEY must be one line of visible ASCII characters`);
    }
    // A local model server often needs no key, so an address alone configures a provider too.
    if (apiKey === undefined && baseUrl === undefined) continue;
    providers[name] = { apiKey, baseUrl: baseUrl ?? defaultBaseUrl };
  }
  return providers;
}

/** The bot and the chat in which it tells operators; neither without the other. */
function readTelegram(read: EnvironmentReader): TelegramSettings | undefined {
  const botToken = read.secret('TELEGRAM_BOT_TOKEN');
  const chatId = read.text('TELEGRAM_ADMIN_CHAT_ID');
  const apiUrl = read.url('TELEGRAM_API_URL', ['http', 'https'], 'https://api.telegram.org');
  if (botToken !== undefined && !/^\d+:[\w-]+$/.test(botToken)) {
    read.problems.push('TELEGRAM_BOT_TOKEN must be like 123456:abc, as BotFather gives it');
  }
  if (botToken === undefined || chatId === undefined) return undefined;
  return { apiUrl, botToken, chatId };
}

function defaultCacheDir(env: Environment): string {
  const caches =
    platform() === 'darwin'
      ? path.join(homedir(), 'Library', 'Caches')
      : (env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'));
  return path.join(caches, 'agent-platform-service');
}
