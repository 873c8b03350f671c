import { Histogram, Registry } from 'prom-client';
import type { AttemptResult } from './ai/routing/no-answer-error.js';
import { findModel } from './ai/routing/catalogue.js';

/** Seconds; the last bucket is the default timeout of an attempt. */
const ATTEMPT_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30];

/** This process's Prometheus metrics. */
export class Metrics {
  readonly registry = new Registry();
  readonly #attempts = new Histogram({
    name: 'ai_attempt_seconds',
    help: 'Attempts at AI providers until the answer, or until a stream began',
    labelNames: ['provider', 'model', 'outcome'],
    buckets: ATTEMPT_BUCKETS,
    registers: [this.registry],
  });

  /** Counts one attempt. Models outside the catalogue share one label, because agents choose their names. */
  recordAttempt({ provider, model, outcome, ms }: AttemptResult): void {
    const known = findModel(`${provider}/${model}`) ? model : 'other';
    this.#attempts.observe({ provider, model: known, outcome }, ms / 1000);
  }
}
