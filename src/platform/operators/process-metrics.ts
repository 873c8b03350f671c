import { performance, type EventLoopUtilization } from 'node:perf_hooks';
import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { MetricsSource } from './metrics-source.js';

/**
 * Interval of the default metrics' timer: at the library's 10 ms, the timer alone takes 0.5 % of a core in
 * an idle process. So its figures are dropped, and `aps_event_loop_utilization` replaces them.
 */
const UNUSED_TIMER_MS = 60_000;
const FIGURES_OF_TIMER = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'];

/** Metrics of one process. */
export class ProcessMetrics implements MetricsSource {
  readonly registry = new Registry();
  #utilization: EventLoopUtilization = performance.eventLoopUtilization();

  get contentType(): string {
    return this.registry.contentType;
  }

  read(): Promise<string> {
    return this.registry.metrics();
  }

  /** Adds metrics of the Node process and its event loop. Call once: their observers remain. */
  collectDefaults(): void {
    const register = this.registry;
    collectDefaultMetrics({ register, eventLoopMonitoringPrecision: UNUSED_TIMER_MS });
    for (const figure of FIGURES_OF_TIMER) {
      register.removeSingleMetric(`nodejs_eventloop_lag_${figure}_seconds`);
    }
    const gauge: Gauge = new Gauge({
      name: 'aps_event_loop_utilization',
      help: 'Share of time, since the previous scrape, in which the event loop was not idle',
      registers: [register],
      aggregator: 'max',
      collect: () => gauge.set(this.#utilizationSinceLast()),
    });
  }

  /** Adds these metrics to those of the processes that share the ports. */
  shareWithCluster(): void {
    AggregatorRegistry.setRegistries(this.registry);
    void new AggregatorRegistry(); // answers the first process's questions
  }

  #utilizationSinceLast(): number {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#utilization);
    this.#utilization = now;
    return utilization;
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
