import type { Logger } from 'pino';
import type { Settings } from '../../src/settings.js';
import type { MetricsSource } from '../../src/metrics.js';
import { anonymous } from '../auth/anonymous.js';
import { endpoint } from '../http/endpoint.js';
import { createListener, type Listener } from '../http/listener.js';
import { streamReply } from '../http/reply.js';

/** Creates the Prometheus metrics listener, on its own port because only the operator may read metrics. */
export function createMetricsListener(dependencies: {
  readonly settings: Settings;
  readonly metrics: MetricsSource;
  readonly log: Logger;
}): Listener {
  const { settings, log, metrics } = dependencies;
  return createListener({
    name: 'metrics',
    title: 'Agent Platform Service: metrics',
    endpoints: [
      endpoint({
        method: 'GET',
        path: '/metrics',
        summary: "Metrics in Prometheus's text format",
        tag: 'Metrics',
        auth: anonymous,
        responses: { 200: 'stream' },
        handler: async () => streamReply(200, await metrics.read(), metrics.contentType),
      }),
    ],
    limits: [],
    authenticate: [],
    log,
    settings: settings.http,
    refuseFrom: [settings.agents.subnetPool],
  });
}
