import type { Logger } from 'pino';
import type { MetricsSource } from '../src/platform/operators/metrics-source.js';
import {
  serveOperators,
  type OperatorsListening,
} from '../src/platform/operators/operators-listener.js';
import type { Readiness } from '../src/platform/operators/readiness.js';
import type { Settings } from '../src/settings.js';

/** Opens the operators' address of the API. */
export function openOperators(parts: {
  readonly settings: Settings;
  readonly log: Logger;
  readonly metrics: MetricsSource;
  readonly readiness: Readiness;
}): Promise<OperatorsListening> {
  const { agents, http } = parts.settings;
  return serveOperators({
    ...parts,
    host: http.host,
    port: http.metricsPort,
    variable: 'METRICS_PORT',
    names: http.ownNames,
    refuseFrom: [agents.subnetPool],
  });
}
