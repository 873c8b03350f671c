import { address } from '../environment/address.js';
import { area, variable, type SettingsOf } from '../environment/area.js';
import {
  boolean,
  count,
  hostNames,
  networks,
  port,
  text,
  textAs,
  textMatching,
} from '../environment/types.js';
import { inUrl, LOOPBACK_NAMES } from './own-hosts.js';
import { registrableDomain } from './registrable-domain.js';

const MOST_A_MINUTE = 10_000_000;

const MIN_KEY_LENGTH = 32;

/** The domain of agents on a developer's machine: browsers resolve names below it to this machine. */
const LOCAL_DOMAIN = 'localhost';

const domainName = textMatching(
  /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,9}$/,
  'a domain name in lower case, like agents.example',
);

const longKey = textAs(`at least ${MIN_KEY_LENGTH} characters (openssl rand -base64 32)`, (value) =>
  value.length >= MIN_KEY_LENGTH ? value : undefined,
);

export const httpSettings = area(
  'Listeners',
  (mode) => ({
    host: variable('HOST', text.prefault('127.0.0.1'), 'address the APIs listen on'),
    webPort: variable('WEB_PORT', port.prefault('3000'), 'the web API'),
    backendPort: variable('BACKEND_PORT', port.prefault('3001'), 'the backend API'),
    summarizerPort: variable('SUMMARIZER_PORT', port.prefault('3100'), 'the web summarizer'),
    metricsPort: variable(
      'METRICS_PORT',
      port.prefault('9464'),
      'port of `/metrics`, `/livez` and `/readyz` of the API, for operators',
    ),
    summarizerMetricsPort: variable(
      'SUMMARIZER_METRICS_PORT',
      port.prefault('9469'),
      'the same of the web summarizer',
    ),
    processes: variable(
      'API_PROCESSES',
      count({ least: 1, most: 64 }).prefault('1'),
      'API processes that share the ports of both APIs on this machine: one for each free core; more than one needs `REDIS_URL`',
    ),
    webUrl: variable(
      'WEB_URL',
      address(mode, 'http', 'https').optional(),
      'public address of the web API',
      {
        whenUnset: 'from host and port',
      },
    ),
    agentDomain: variable(
      'AGENT_DOMAIN',
      mode.production ? domainName.optional() : domainName.prefault(LOCAL_DOMAIN),
      'domain below which the web API serves agents, as `<subdomain>.<domain>`: not one that shares its registered name with `WEB_URL`',
      { whenUnset: 'none: agents have no address' },
    ),
    backendUrl: variable(
      'BACKEND_URL',
      address(mode, 'http', 'https').optional(),
      'where the web API reaches the backend',
      { whenUnset: 'from host and port' },
    ),
    backendPublicUrl: variable(
      'BACKEND_PUBLIC_URL',
      address(mode, 'http', 'https').optional(),
      'address of the backend for programs elsewhere, such as MCP clients',
      { whenUnset: '`BACKEND_URL`' },
    ),
    summarizerUrl: variable(
      'SUMMARIZER_URL',
      address(mode, 'http', 'https').optional(),
      'address of the web summarizer, whose results the web API sells',
      { whenUnset: 'none are sold' },
    ),
    summarizerKey: variable(
      'SUMMARIZER_KEY',
      longKey.optional(),
      'by which the web summarizer recognizes the web API and accepts its names of buyers; both processes have it',
      { secret: true, whenUnset: 'buyers share the limit of one client; `npm start` makes one' },
    ),
    x402Url: variable(
      'X402_GATEWAY_URL',
      address(mode, 'http', 'https').optional(),
      'address of an x402 gateway whose endpoints the web API resells, and that `/api/x402` calls, including its credentials',
      { secret: true, whenUnset: 'none are sold, and `/api/x402` fails' },
    ),
    allowedHosts: variable(
      'ALLOWED_HOSTS',
      hostNames.prefault(''),
      'names accepted in `Host` beside `WEB_URL`, `BACKEND_URL`, `BACKEND_PUBLIC_URL`, `HOST` and loopback',
    ),
    trustedProxies: variable(
      'TRUSTED_PROXIES',
      networks.prefault(''),
      'addresses and networks whose `X-Forwarded-For` is believed',
    ),
    requestsPerMinute: variable(
      'RATE_LIMIT_REQUESTS',
      count({ least: 60, most: MOST_A_MINUTE }).prefault('6000'),
      'requests of one address a minute on each listener, whatever they ask',
    ),
    aiCallsPerMinute: variable(
      'RATE_LIMIT_AI_CALLS',
      count({ least: 1, most: MOST_A_MINUTE }).prefault('600'),
      'AI calls of one user, over all keys, or of one agent a minute',
    ),
    hstsSubdomains: variable(
      'HSTS_SUBDOMAINS',
      boolean.prefault('false'),
      '`true` makes browsers use HTTPS for all subdomains of the APIs, too',
    ),
    redisUrl: variable(
      'REDIS_URL',
      address(mode, 'redis', 'rediss').optional(),
      'rate limits that several API processes share',
      { secret: true, whenUnset: 'none: memory' },
    ),
    exposeDevelopment: variable(
      'EXPOSE_DEVELOPMENT',
      boolean.prefault('false'),
      'outside production: `true` lets `HOST` be an address that others reach',
    ),
    internalApiKey: variable(
      'INTERNAL_API_KEY',
      mode.production ? longKey : text.optional(),
      'opens the backend API; `npm start` makes one, and prints it once',
      { secret: true },
    ),
    previousInternalApiKey: variable(
      'INTERNAL_API_KEY_PREVIOUS',
      text.optional(),
      'opens it as well, while the key is changed',
      { secret: true },
    ),
  }),
  (values, { production }) => {
    const { agentDomain, allowedHosts, backendPort, host, summarizerPort, webPort, ...others } =
      values;
    const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : inUrl(host);
    const ownWebUrl = `http://${reachable}:${webPort}`;
    const webUrl = values.webUrl ?? ownWebUrl;
    const backendUrl = values.backendUrl ?? `http://${reachable}:${backendPort}`;
    const backendPublicUrl = values.backendPublicUrl ?? backendUrl;
    const reachedBy = [webUrl, backendUrl, backendPublicUrl].map((each) => new URL(each).hostname);
    return {
      ...others,
      /** Place of agents' addresses; undefined if they have none. */
      agentsAt: agentDomain === undefined ? undefined : agentsAt(agentDomain, webPort),
      backendPort,
      host,
      summarizerPort,
      /** Undefined if no summarizer's results are sold. */
      summarizer:
        values.summarizerUrl === undefined
          ? undefined
          : { url: values.summarizerUrl, key: values.summarizerKey },
      /** Address at which this machine reaches the web API. */
      ownWebUrl,
      ownSummarizerUrl: `http://${reachable}:${summarizerPort}`,
      webPort,
      production,
      internalApiKeys: [values.internalApiKey, values.previousInternalApiKey].filter(
        (key) => key !== undefined,
      ),
      webUrl,
      backendUrl,
      backendPublicUrl,
      ownNames: new Set<string>([...LOOPBACK_NAMES, ...reachedBy, inUrl(host), ...allowedHosts]),
    };
  },
  (
    {
      agentDomain,
      exposeDevelopment,
      host,
      processes,
      redisUrl,
      summarizerKey,
      summarizerUrl,
      webUrl,
    },
    { production },
  ) => [
    ...(production && agentDomain !== undefined && sharesDomain(agentDomain, webUrl)
      ? [
          'AGENT_DOMAIN shares its registered name with WEB_URL, so that pages of agents could set ' +
            'cookies for the platform: use a domain of its own',
        ]
      : []),
    ...(production || exposeDevelopment || isLoopback(host)
      ? []
      : [
          'HOST is an address that others reach: set NODE_ENV=production, or EXPOSE_DEVELOPMENT=true ' +
            'for a platform with the defaults of development',
        ]),
    ...(processes > 1 && redisUrl === undefined
      ? ['API_PROCESSES needs REDIS_URL: without it each process has rate limits of its own']
      : []),
    ...(production && summarizerUrl !== undefined && summarizerKey === undefined
      ? ['SUMMARIZER_KEY is missing: without it one buyer of pages can hold up all others']
      : []),
  ],
);

/** Returns the place of agents: a developer's machine reaches the web API itself, others a proxy with TLS. */
function agentsAt(domain: string, webPort: number) {
  const isLocal = domain === LOCAL_DOMAIN;
  return {
    domain,
    scheme: isLocal ? ('http' as const) : ('https' as const),
    port: isLocal ? webPort : undefined,
  };
}

function sharesDomain(agentDomain: string, webUrl: string | undefined): boolean {
  const ofWeb = webUrl === undefined ? undefined : registrableDomain(new URL(webUrl).hostname);
  return ofWeb !== undefined && ofWeb === registrableDomain(`agent.${agentDomain}`);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

export type HttpSettings = SettingsOf<typeof httpSettings>;
