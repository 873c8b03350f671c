import type { Logger } from 'pino';
import { ContainerError, DockerUnavailableError } from '../containers/container-errors.js';
import { pause } from '../../lib/pause.js';
import type { AgentEgress, EgressProbe } from './agent-egress.js';

/** Milliseconds; half of each pause is random. */
export interface EgressTimes {
  /** Pause between two checks of valid rules. */
  readonly check: number;
  /** First and longest pause between two attempts after a failure; doubled each time. */
  readonly firstPause: number;
  readonly lastPause: number;
  /**
   * Limit for all starts together to wait for the first result; longer than a probe takes. Shared, because
   * each start occupies a slot that other starts wait for.
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

export interface EgressState {
  /** `guarded`: rules are set and were probed. `open`: rules are missing or ineffective. */
  readonly status: (typeof EGRESS_STATUSES)[number];
  /** Reason for `open` or `unknown`; with `guarded`, a remark. */
  readonly reason: string | null;
  /** Agents are not started because of the status. */
  readonly refuses: boolean;
}

export class NetworkOpenError extends ContainerError {
  override readonly name = 'NetworkOpenError';

  constructor(reason: string | null) {
    super(`Agents are not started because their networks would be open: ${reason ?? 'not known'}`);
  }
}

export interface HostEgressParts {
  readonly egress: Pick<AgentEgress, 'hold' | 'release'>;
  /** False if an operator has disabled the rules; none are then set. */
  readonly guarded: boolean;
  /** Agents may start only while the rules are known to work. */
  readonly required: boolean;
  readonly log: Logger;
  readonly times?: EgressTimes;
  readonly onChange?: (state: EgressState) => void;
}

export class HostEgress {
  readonly #parts: HostEgressParts;
  #state: EgressState;
  /** This process has probed the rules successfully. */
  #isProven = false;
  /** Remark on the last successful probe. */
  #proven: string | null = null;
  readonly #known = new AbortController();
  /** Resolves when the first result is available, or at the time limit. */
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

  /** Waits for the first result before a start. @throws NetworkOpenError */
  async mayStart(): Promise<void> {
    if (this.#parts.guarded) {
      await (this.#firstOutcome ??= pause(this.#times.firstOutcome, this.#known.signal));
    }
    if (this.#state.refuses) throw new NetworkOpenError(this.#state.reason);
  }

  /** Forces a new probe, because rules may be lost after an engine's outage. */
  dockerIsBack(): void {
    this.#isProven = false;
    this.#wake.abort();
  }

  /** Maintains the rules until the signal aborts; then removes them if the engine has no agents. */
  async keep(signal: AbortSignal): Promise<void> {
    if (!this.#parts.guarded) {
      this.#become('open', 'AGENT_EGRESS=open');
      await pause(2 ** 31 - 1, signal);
      return;
    }
    for (let failures = 0; !signal.aborted;) {
      this.#wake = new AbortController();
      failures = (await this.#inspect()) ? 0 : failures + 1;
      const { check, firstPause, lastPause } = this.#times;
      const longest =
        failures === 0 ? check : Math.min(firstPause * 2 ** (failures - 1), lastPause);
      const wake = AbortSignal.any([signal, this.#wake.signal]);
      if (!signal.aborted) await pause(longest * (0.5 + Math.random() / 2), wake);
    }
    await this.#release();
  }

  /** Sets and checks the rules; true if they are set and work. */
  async #inspect(): Promise<boolean> {
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
      // Rules that do not work are probed again.
      this.#isProven = fault === undefined;
      return this.#isProven;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      // The rules may have been set again before the failure, and are unproven then.
      this.#isProven = false;
      this.#parts.log.debug({ err: error }, "rules of agents' networks could not be set");
      // Rules stay set while the engine is down or too busy for a check.
      if (this.#state.status === 'guarded') this.#become('guarded', `not checked: ${reason}`);
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
    else log.warn({ status, reason }, "agents' networks may be unguarded");
    onChange?.(this.#state);
  }

  async #release(): Promise<void> {
    try {
      if (this.#state.status === 'guarded') await this.#parts.egress.release();
    } catch (error) {
      this.#parts.log.warn({ err: error }, "the rules of agents' networks could not be removed");
    }
  }
}

const NO_AI = 'agents do not reach the AI listener';

/** Describes the destinations that agents reach but must not; undefined if there are none. */
function faultOf({ reached, hasIpv6 }: EgressProbe): string | undefined {
  if (reached.length > 0) return `agents still reach ${reached.join(', ')}`;
  return hasIpv6 ? 'agents have addresses in IPv6' : undefined;
}
