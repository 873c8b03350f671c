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
    host: variable('HOST', text.prefault('127.0.0.1'), 'listen address of the APIs'),
    webPort: variable('WEB_PORT', port.prefault('3000'), 'port of the web API'),
    backendPort: variable('BACKEND_PORT', port.prefault('3001'), 'port of the backend API'),
    summarizerPort: variable(
      'SUMMARIZER_PORT',
      port.prefault('3100'),
      'port of the web summarizer',
    ),
    metricsPort: variable(
      'METRICS_PORT',
      port.prefault('9464'),
      'port of `/metrics`, `/livez` and `/readyz` of the API, for operators',
    ),
    summarizerMetricsPort: variable(
      'SUMMARIZER_METRICS_PORT',
      port.prefault('9469'),
      'port of `/metrics`, `/livez` and `/readyz` of the web summarizer, for operators',
    ),
    processes: variable(
      'API_PROCESSES',
      count({ least: 1, most: 64 }).prefault('1'),
      'number of API processes that share the ports of both APIs on this machine, at most one for each free core; more than one needs `REDIS_URL`',
    ),
    webUrl: variable(
      'WEB_URL',
      address(mode, 'http', 'https').optional(),
      'public address of the web API',
      {
        whenUnset: 'from `HOST` and the port',
      },
    ),
    agentDomain: variable(
      'AGENT_DOMAIN',
      mode.production ? domainName.optional() : domainName.prefault(LOCAL_DOMAIN),
      'domain below which the web API serves agents, as `<subdomain>.<domain>`; must not share its registered name with `WEB_URL`',
      { whenUnset: 'none: agents have no address' },
    ),
    backendUrl: variable(
      'BACKEND_URL',
      address(mode, 'http', 'https').optional(),
      'address at which the web API reaches the backend',
      { whenUnset: 'from `HOST` and the port' },
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
      { whenUnset: 'no results are sold' },
    ),
    summarizerKey: variable(
      'SUMMARIZER_KEY',
      longKey.optional(),
      'key by which the web summarizer trusts the buyers named by the web API; must be the same in both processes',
      {
        secret: true,
        whenUnset: 'all buyers share the limit of one client; `npm start` generates a key',
      },
    ),
    x402Url: variable(
      'X402_GATEWAY_URL',
      address(mode, 'http', 'https').optional(),
      'address of an x402 gateway, including its credentials; the web API resells its endpoints, and `/api/x402` calls it',
      { secret: true, whenUnset: 'no endpoints are sold, and `/api/x402` fails' },
    ),
    allowedHosts: variable(
      'ALLOWED_HOSTS',
      hostNames.prefault(''),
      'names accepted in the `Host` header in addition to `WEB_URL`, `BACKEND_URL`, `BACKEND_PUBLIC_URL`, `HOST` and loopback',
    ),
    trustedProxies: variable(
      'TRUSTED_PROXIES',
      networks.prefault(''),
      'addresses and networks of proxies whose `X-Forwarded-For` header is trusted',
    ),
    requestsPerMinute: variable(
      'RATE_LIMIT_REQUESTS',
      count({ least: 60, most: MOST_A_MINUTE }).prefault('6000'),
      'maximum number of requests per minute of one address, on each listener, for all paths together',
    ),
    aiCallsPerMinute: variable(
      'RATE_LIMIT_AI_CALLS',
      count({ least: 1, most: MOST_A_MINUTE }).prefault('600'),
      'maximum number of AI calls per minute of one user (over all keys), and of one agent',
    ),
    hstsSubdomains: variable(
      'HSTS_SUBDOMAINS',
      boolean.prefault('false'),
      '`true`: browsers must use HTTPS for all subdomains of the APIs as well',
    ),
    redisUrl: variable(
      'REDIS_URL',
      address(mode, 'redis', 'rediss').optional(),
      'Redis server that stores the rate limits shared by several API processes',
      { secret: true, whenUnset: 'none: memory' },
    ),
    exposeDevelopment: variable(
      'EXPOSE_DEVELOPMENT',
      boolean.prefault('false'),
      'outside production, `true`: `HOST` may be an address that other machines can reach',
    ),
    internalApiKey: variable(
      'INTERNAL_API_KEY',
      mode.production ? longKey : text.optional(),
      'key that grants access to the backend API; `npm start` generates one, and prints it once',
      { secret: true },
    ),
    previousInternalApiKey: variable(
      'INTERNAL_API_KEY_PREVIOUS',
      text.optional(),
      'the former `INTERNAL_API_KEY`, accepted while the key is being replaced',
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
