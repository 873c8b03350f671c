import type { Logger } from 'pino';
import type { Settings } from '../../src/settings.js';
import type { Database } from '../../src/platform/database/database.js';
import type { Metrics } from '../../src/metrics.js';
import { anonymous } from '../auth/anonymous.js';
import { endpoint } from '../http/endpoint.js';
import { createListener, type Listener } from '../http/listener.js';
import { streamReply } from '../http/reply.js';

/** Creates the Prometheus metrics listener, on its own port because only the operator may read metrics. */
export function createMetricsListener(dependencies: {
  readonly settings: Settings;
  readonly database: Database;
  readonly metrics: Metrics;
  readonly log: Logger;
}): Listener {
  const { settings, database, log, metrics } = dependencies;
  const { registry } = metrics;
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
        handler: async () => streamReply(200, await registry.metrics(), registry.contentType),
      }),
    ],
    limits: [],
    authenticate: [],
    database,
    log,
    settings: settings.http,
    refuseFrom: [settings.agents.subnetPool],
  });
}
