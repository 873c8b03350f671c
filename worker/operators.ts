import type { Logger } from 'pino';
import type { MetricsSource } from '../src/platform/operators/metrics-source.js';
import {
  serveOperators,
  type OperatorsListening,
} from '../src/platform/operators/operators-listener.js';
import type { Readiness } from '../src/platform/operators/readiness.js';
import type { Settings } from '../src/settings.js';

/** Opens the operators' address of a worker. */
export function openOperators(parts: {
  readonly settings: Settings;
  readonly listen: { readonly address: string; readonly port: number };
  readonly variable: string;
  readonly metrics: MetricsSource;
  readonly readiness: Readiness;
  readonly log: Logger;
}): Promise<OperatorsListening> {
  const { agents, http } = parts.settings;
  return serveOperators({
    ...parts,
    host: parts.listen.address,
    port: parts.listen.port,
    names: http.ownNames,
    refuseFrom: [agents.subnetPool],
  });
}
