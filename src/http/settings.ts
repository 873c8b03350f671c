import { area, variable, type SettingsOf } from '../environment/area.js';
import { networks, port, text, url } from '../environment/types.js';

export const httpSettings = area(
  'Listeners',
  ({ production }) => ({
    host: variable('HOST', text.prefault('127.0.0.1'), 'where the APIs listen'),
    webPort: variable('WEB_PORT', port.prefault('3000'), 'the web API'),
    backendPort: variable('BACKEND_PORT', port.prefault('3001'), 'the backend API'),
    metricsPort: variable(
      'METRICS_PORT',
      port.prefault('9464'),
      'where Prometheus finds `/metrics` of an API process',
    ),
    webUrl: variable('WEB_URL', url('http', 'https').optional(), 'public address of the web API', {
      otherwise: 'from host and port',
    }),
    backendUrl: variable(
      'BACKEND_URL',
      url('http', 'https').optional(),
      'where the web API reaches the backend',
      { otherwise: 'from host and port' },
    ),
    trustedProxies: variable(
      'TRUSTED_PROXIES',
      networks.prefault(''),
      'addresses and networks whose `X-Forwarded-For` is believed',
    ),
    redisUrl: variable(
      'REDIS_URL',
      url('redis', 'rediss').optional(),
      'rate limits that several API processes share',
      { secret: true, otherwise: 'none: memory' },
    ),
    internalApiKey: variable(
      'INTERNAL_API_KEY',
      production ? text : text.optional(),
      'opens the backend API; `npm start` makes and prints one',
      { secret: true },
    ),
  }),
  (values, { production }) => {
    const { backendPort, host, webPort } = values;
    const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
    return {
      ...values,
      production,
      webUrl: values.webUrl ?? `http://${reachable}:${webPort}`,
      backendUrl: values.backendUrl ?? `http://${reachable}:${backendPort}`,
    };
  },
);

export type HttpSettings = SettingsOf<typeof httpSettings>;
