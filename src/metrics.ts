import { Histogram } from 'prom-client';
import type { AttemptResult } from './ai/routing/no-answer-error.js';
import type { ModelEntry } from './ai/models/model-set.js';
import { RequestSeconds } from './platform/http/request-seconds.js';
import { ProcessMetrics } from './platform/operators/process-metrics.js';

/** Seconds; the last bucket is the default timeout of an attempt at a provider on this machine. */
const ATTEMPT_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120];

/** Metrics of a process that answers requests and calls AI providers. */
export class Metrics extends ProcessMetrics {
  readonly requests = new RequestSeconds(this.registry);
  readonly #attempts = new Histogram({
    name: 'aps_ai_attempt_seconds',
    help: 'Attempts at AI providers until the answer, or until a stream began',
    labelNames: ['provider', 'model', 'outcome'],
    buckets: ATTEMPT_BUCKETS,
    registers: [this.registry],
  });

  /** Counts one attempt. Models that the catalogue lacks share one label: agents and servers name them. */
  recordAttempt(
    { provider, model, outcome, ms }: AttemptResult,
    entry: ModelEntry | undefined,
  ): void {
    const known = entry === undefined || entry.isDiscovered ? 'other' : model;
    this.#attempts.observe({ provider, model: known, outcome }, ms / 1000);
  }
}
