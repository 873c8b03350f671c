import { AggregatorRegistry, Histogram, Registry } from 'prom-client';
import type { AttemptResult } from './ai/routing/no-answer-error.js';
import type { ModelEntry } from './ai/models/model-set.js';

/** Seconds; the last bucket is the default timeout of an attempt at a provider on this machine. */
const ATTEMPT_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120];

/** Metrics in Prometheus's text format. */
export interface MetricsSource {
  readonly contentType: string;
  read(): Promise<string>;
}

/** This process's Prometheus metrics. */
export class Metrics implements MetricsSource {
  readonly #registry = new Registry();
  readonly #attempts = new Histogram({
    name: 'ai_attempt_seconds',
    help: 'Attempts at AI providers until the answer, or until a stream began',
    labelNames: ['provider', 'model', 'outcome'],
    buckets: ATTEMPT_BUCKETS,
    registers: [this.#registry],
  });

  /** Counts one attempt. Models without an entry share one label, because agents choose their names. */
  recordAttempt(
    { provider, model, outcome, ms }: AttemptResult,
    entry: ModelEntry | undefined,
  ): void {
    const known = entry ? model : 'other';
    this.#attempts.observe({ provider, model: known, outcome }, ms / 1000);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  read(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Adds these metrics to those of the processes that share the ports. */
  shareWithCluster(): void {
    AggregatorRegistry.setRegistries(this.#registry);
    void new AggregatorRegistry(); // answers the first process's questions
  }
}

/** Sums of the metrics of all processes that share the ports, as seen by the process that started them. */
export class ClusterMetrics implements MetricsSource {
  readonly #processes = new AggregatorRegistry();

  get contentType(): string {
    return this.#processes.contentType;
  }

  /** Reads the metrics of all processes. @throws Error if one does not answer within 5 s. */
  read(): Promise<string> {
    return this.#processes.clusterMetrics();
  }
}
