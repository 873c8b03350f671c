import { Gauge } from 'prom-client';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import type { EgressState } from '../src/docker/egress/host-egress.js';
import { RequestSeconds } from '../src/platform/http/request-seconds.js';
import { ProcessMetrics } from '../src/platform/operators/process-metrics.js';
import type { SdkMetrics } from './temporal-runtime.js';

/** Metrics of a process that polls Temporal, with those of Temporal's SDK under their own names. */
export class PollingMetrics extends ProcessMetrics {
  readonly #sdk: SdkMetrics;

  constructor(sdk: SdkMetrics) {
    super();
    this.#sdk = sdk;
  }

  override async read(): Promise<string> {
    const [own, sdk] = await Promise.all([super.read(), this.#sdk()]);
    return `${own}\n${sdk}`;
  }
}

const LIMITERS: readonly (keyof HostLimiters)[] = ['calls', 'starts', 'pulls', 'copies', 'turns'];

const SUPERVISION = ['missing', 'stuck', 'blocked', 'unseen'] as const;

/** Number of agents by the result of a pass over a host's supervisors. */
type SupervisionCounts = Readonly<Record<(typeof SUPERVISION)[number], number>>;

/** Metrics of a worker. */
export class WorkerMetrics extends PollingMetrics {
  readonly requests = new RequestSeconds(this.registry);
  readonly #supervision = SUPERVISION.map((what) => ({
    what,
    gauge: new Gauge({
      name: `aps_agent_supervisors_${what}`,
      help: 'Agents by the result of the last pass over the supervisors of a host',
      labelNames: ['host'],
      registers: [this.registry],
    }),
  }));

  /** Exports a host's running and waiting work, by kind. */
  exportLimiters(limiters: HostLimiters): void {
    this.#exportTurns(
      'taken',
      'Work of the host in progress',
      (kind) => limiters[kind].state.running,
    );
    this.#exportTurns(
      'waiting',
      'Work that waits for a slot',
      (kind) => limiters[kind].state.waiting,
    );
  }

  /** Exports whether the networks of this host's agents are known to be guarded. */
  exportEgress(state: () => EgressState): void {
    const gauge: Gauge = new Gauge({
      name: 'aps_agent_network_guarded',
      help: "1 while the agents' networks of this host are known to be guarded",
      registers: [this.registry],
      collect: () => gauge.set(state().status === 'guarded' ? 1 : 0),
    });
  }

  /** Records the results of a pass over a host's supervisors. */
  recordSupervision(host: string, counts: SupervisionCounts): void {
    for (const { gauge, what } of this.#supervision) gauge.set({ host }, counts[what]);
  }

  #exportTurns(name: string, help: string, count: (kind: keyof HostLimiters) => number): void {
    const gauge: Gauge<'kind'> = new Gauge({
      name: `aps_agent_host_turns_${name}`,
      help,
      labelNames: ['kind'],
      registers: [this.registry],
      collect() {
        for (const kind of LIMITERS) gauge.set({ kind }, count(kind));
      },
    });
  }
}
