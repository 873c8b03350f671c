import type { Logger } from 'pino';
import { ContainerError, DockerUnavailableError } from '../containers/container-errors.js';
import { pause } from '../../lib/pause.js';
import type { AgentEgress, EgressProbe } from './agent-egress.js';

/** In milliseconds; half of each pause is by chance. */
export interface EgressTimes {
  /** Between two looks at rules that are as they should be. */
  readonly check: number;
  /** Between two attempts otherwise: it doubles. */
  readonly firstPause: number;
  readonly lastPause: number;
  /**
   * How long starts of agents wait to hear how their network is: longer than it takes to find out. All of
   * them together, since each waits in a turn that others wait for.
   */
  readonly firstOutcome: number;
}

const TIMES: EgressTimes = {
  check: 5 * 60_000,
  firstPause: 2_000,
  lastPause: 60_000,
  firstOutcome: 60_000,
};

export const EGRESS_STATUSES = ['unknown', 'guarded', 'open'] as const;

/** How a host keeps its agents' networks. */
export interface EgressState {
  /** `guarded`: rules are there and were tried. `open`: they are not, or do not hold. */
  readonly status: (typeof EGRESS_STATUSES)[number];
  /** Why it is open, or not known. */
  readonly reason: string | null;
  /** Whether agents are not started because of it. */
  readonly refuses: boolean;
}

/** Agents are not started, because nothing would keep them from private networks. */
export class NetworkOpenError extends ContainerError {
  constructor(reason: string | null) {
    super(`Agents are not started, because their networks would be open: ${reason ?? 'not known'}`);
  }
}

export interface HostEgressParts {
  readonly egress: Pick<AgentEgress, 'hold' | 'release'>;
  /** False where an operator has said so: then no rules are set. */
  readonly guarded: boolean;
  /** Whether agents are only started where it is known that the rules hold. */
  readonly required: boolean;
  readonly log: Logger;
  readonly times?: EgressTimes;
  /** Is told of every change. */
  readonly onChange?: (state: EgressState) => void;
}

/** Keeps the rules of one host's agents, from the start of its worker on. */
export class HostEgress {
  readonly #parts: HostEgressParts;
  #state: EgressState;
  /** Whether the rules of this process have been tried. */
  #isProven = false;
  /** What there was to say of them. */
  #proven: string | null = null;
  readonly #known = new AbortController();
  /** Ends when it is known, or has been waited for long enough. */
  #firstOutcome: Promise<void> | undefined;
  #wake = new AbortController();

  constructor(parts: HostEgressParts) {
    this.#parts = parts;
    this.#state = { status: 'unknown', reason: 'not tried yet', refuses: parts.required };
  }

  get #times(): EgressTimes {
    return this.#parts.times ?? TIMES;
  }

  get state(): EgressState {
    return this.#state;
  }

  /**
   * For whoever starts an agent: waits until it is known how its network is.
   *
   * @throws NetworkOpenError where it would be open, and that is not accepted.
   */
  async mayStart(): Promise<void> {
    if (this.#parts.guarded) {
      await (this.#firstOutcome ??= pause(this.#times.firstOutcome, this.#known.signal));
    }
    if (this.#state.refuses) throw new NetworkOpenError(this.#state.reason);
  }

  /** Rules may have gone with an engine that was away. */
  dockerIsBack(): void {
    this.#isProven = false;
    this.#wake.abort();
  }

  /** Sets the rules and looks after them, until the signal aborts; an engine without agents keeps none. */
  async keep(signal: AbortSignal): Promise<void> {
    if (!this.#parts.guarded) {
      this.#become('open', 'AGENT_EGRESS=open');
      await pause(2 ** 31 - 1, signal);
      return;
    }
    for (let failures = 0; !signal.aborted;) {
      this.#wake = new AbortController();
      failures = (await this.#look()) ? 0 : failures + 1;
      const { check, firstPause, lastPause } = this.#times;
      const longest =
        failures === 0 ? check : Math.min(firstPause * 2 ** (failures - 1), lastPause);
      const wake = AbortSignal.any([signal, this.#wake.signal]);
      if (!signal.aborted) await pause(longest * (0.5 + Math.random() / 2), wake);
    }
    await this.#release();
  }

  /** @returns whether the rules are there and hold. */
  async #look(): Promise<boolean> {
    const { egress } = this.#parts;
    try {
      const probe = await egress.hold(!this.#isProven);
      if (!probe) {
        if (this.#state.status === 'guarded') this.#become('guarded', this.#proven);
        return true;
      }
      const fault = faultOf(probe);
      this.#proven = probe.reachesAi ? null : NO_AI;
      if (fault === undefined) this.#become('guarded', this.#proven);
      else this.#become('open', fault);
      // What does not hold is tried again.
      this.#isProven = fault === undefined;
      return this.#isProven;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#parts.log.debug({ err: error }, "rules of the agents' networks cannot be set");
      // What was set stays set: an engine that is away, or too busy to look, takes nothing back.
      if (this.#state.status === 'guarded') this.#become('guarded', `not looked at: ${reason}`);
      else if (error instanceof DockerUnavailableError) this.#become('unknown', reason);
      else this.#become('open', reason);
      return false;
    }
  }

  #become(status: EgressState['status'], reason: string | null): void {
    const before = this.#state;
    const refuses = status !== 'guarded' && this.#parts.required;
    this.#state = { status, reason, refuses };
    if (status !== 'unknown') this.#known.abort();
    if (before.status === status && before.reason === reason) return;
    const { log, onChange } = this.#parts;
    if (status === 'guarded') log.info({ reason }, "agents' networks are guarded");
    else log.warn({ status, reason }, "agents' networks are not known to be guarded");
    onChange?.(this.#state);
  }

  async #release(): Promise<void> {
    try {
      if (this.#isProven) await this.#parts.egress.release();
    } catch (error) {
      this.#parts.log.warn({ err: error }, "the rules of agents' networks stay");
    }
  }
}

const NO_AI = 'agents do not reach the AI listener';

/** What an agent reaches and must not, in words. */
function faultOf({ reached, hasIpv6 }: EgressProbe): string | undefined {
  if (reached.length > 0) return `agents reach ${reached.join(', ')} all the same`;
  return hasIpv6 ? 'agents have addresses in IPv6' : undefined;
}
