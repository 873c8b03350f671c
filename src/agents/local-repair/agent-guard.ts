import { setTimeout as delay } from 'node:timers/promises';
import type { AgentRef } from '../../types/agent-ref.js';
import type { PastTransition, WatchdogMemory } from '../../types/watchdog.js';
import { setBounded } from '../../lib/bounded-map.js';
import type { HostJournal } from './host-journal.js';
import type { JournalEntry } from './journal-entry.js';

/** Milliseconds to wait for a journal write; a slow disk does not block the caller longer. */
const WRITE_MS = 5_000;

export interface WatchedContainer {
  readonly id: string;
  readonly volumes: readonly string[];
}

/** The supervisor must first read the changes that the host has recorded. */
export class RepairedLocallyError extends Error {
  override readonly name = 'RepairedLocallyError';

  constructor() {
    super('The host has already repaired the agent: read its recorded changes and retry');
  }
}

const MAX_REMEMBERED = 10_000;

interface Occupation {
  /** Supervisor steps in progress. */
  steps: number;
  local: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
}

/**
 * Grants access to the container either to an agent's supervisor or to the local repair, never to both, and
 * records the supervisor's steps in the journal for the local repair.
 */
export class AgentGuard {
  readonly #occupied = new Map<string, Occupation>();
  /** Number of each agent's last step. An observation from before that step may be out of date. */
  readonly #lastSteps = new Map<string, number>();
  #steps = 0;
  readonly #journal: HostJournal;

  constructor(journal: HostJournal) {
    this.#journal = journal;
  }

  /** Runs a step that changes the agent. Ends and prevents local repairs until a supervisor watches again. */
  operation<T>(agentId: string, work: () => Promise<T>): Promise<T> {
    return this.#step(agentId, async ({ local }) => {
      local?.abort.abort();
      await local?.ended;
      const entry = this.#journal.get(agentId);
      // The `held` phase must be on disk before the container changes.
      if (entry && entry.phase !== 'held') await this.#write({ ...entry, phase: 'held' });
      return work();
    });
  }

  async forget(agentId: string): Promise<void> {
    await this.#journal.delete(agentId);
  }

  /**
   * Runs a step of a supervisor's repair, after any local repair has ended; `memory` starts an attempt.
   * @throws RepairedLocallyError if the journal has changes unknown to the supervisor.
   */
  repair<T>(
    agentId: string,
    signal: AbortSignal,
    work: () => Promise<T>,
    memory?: WatchdogMemory,
  ): Promise<T> {
    return this.#step(agentId, async ({ local }) => {
      await endOf(local, signal);
      const entry = this.#journal.get(agentId);
      if (entry && entry.past.length > 0) throw new RepairedLocallyError();
      if (entry && memory) await this.#write({ ...entry, phase: 'killed', memory });
      return work();
    });
  }

  /** Runs a step that is harmless to a repaired agent, after any local repair has ended. */
  afterRepair<T>(agentId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#step(agentId, async ({ local }) => {
      await endOf(local, signal);
      return work();
    });
  }

  /**
   * Runs a local repair, which ends on its signal, unless a supervisor's step is in progress; true if it ran.
   */
  async locally(agentId: string, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const occupation = this.#occupation(agentId);
    if (occupation.steps > 0 || occupation.local) return false;
    const abort = new AbortController();
    const running = work(abort.signal);
    const ended = running.then(
      () => undefined,
      () => undefined, // the caller receives the error
    );
    occupation.local = { abort, ended };
    try {
      await running;
    } finally {
      occupation.local = undefined;
      this.#leave(agentId, occupation);
    }
    return true;
  }

  /** Reports whether a local repair is running; changes observed during a repair are its own. */
  isBusy(agentId: string): boolean {
    return this.#occupied.get(agentId)?.local !== undefined;
  }

  /** Returns the changes recorded here after `lastApplied`, the last that the supervisor has read. */
  unappliedTransitions(
    agentId: string,
    lastApplied: string | undefined,
  ): readonly PastTransition[] {
    const entry = this.#journal.get(agentId);
    if (!entry || entry.past.length === 0) return [];
    const known = entry.past.findIndex(({ id }) => id === lastApplied) + 1;
    const past = entry.past.slice(known);
    if (known > 0) void this.#journal.set({ ...entry, past });
    return past;
  }

  /** Returns the number of the supervisor's last step, for `watched`; undefined during a step. */
  lastStep(agentId: string): number | undefined {
    if ((this.#occupied.get(agentId)?.steps ?? 0) > 0) return undefined;
    return this.#lastSteps.get(agentId) ?? 0;
  }

  /**
   * Records that the supervisor saw the agent healthy; from now on the agent should run.
   * @param glance the step number from before the observation.
   * @param container called only if the journal has a different state.
   */
  async watched(
    { agentId, userId }: AgentRef,
    memory: WatchdogMemory,
    glance: number | undefined,
    container: () => Promise<WatchedContainer | undefined>,
  ): Promise<void> {
    const entry = this.#journal.get(agentId);
    const isKnown = entry?.phase === 'running' && entry.memory.since === memory.since;
    if (isKnown || glance === undefined) return;
    const found = await container();
    if (!found || this.lastStep(agentId) !== glance || this.isBusy(agentId)) return;
    const { id: containerId, volumes } = found;
    const past = this.#journal.get(agentId)?.past ?? [];
    await this.#write({ agentId, userId, containerId, volumes, phase: 'running', memory, past });
  }

  /** Records that the container was started; during a repair this is its progress. */
  async started(agentId: string): Promise<void> {
    const entry = this.#journal.get(agentId);
    if (entry?.phase === 'killed') await this.#write({ ...entry, phase: 'started' });
  }

  async crashed(agentId: string, memory: WatchdogMemory): Promise<void> {
    const entry = this.#journal.get(agentId);
    if (!entry || entry.phase === 'held' || entry.past.length > 0) return;
    if (this.isBusy(agentId)) return;
    await this.#write({ ...entry, memory });
  }

  async #step<T>(agentId: string, work: (occupation: Occupation) => Promise<T>): Promise<T> {
    const occupation = this.#occupation(agentId);
    occupation.steps++;
    setBounded(this.#lastSteps, agentId, ++this.#steps, MAX_REMEMBERED);
    try {
      return await work(occupation);
    } finally {
      occupation.steps--;
      this.#leave(agentId, occupation);
    }
  }

  #occupation(agentId: string): Occupation {
    const known = this.#occupied.get(agentId);
    if (known) return known;
    const occupation: Occupation = { steps: 0, local: undefined };
    this.#occupied.set(agentId, occupation);
    return occupation;
  }

  #leave(agentId: string, { steps, local }: Occupation): void {
    if (steps === 0 && !local) this.#occupied.delete(agentId);
  }

  async #write(entry: JournalEntry): Promise<void> {
    await Promise.race([this.#journal.set(entry), delay(WRITE_MS, undefined, { ref: false })]);
  }
}

/** Waits for a local repair to end. @throws the signal's reason if the signal aborts first. */
async function endOf(local: Occupation['local'], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!local) return;
  const aborted = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true, signal: aborted.signal });
  });
  await Promise.race([local.ended, stopped]);
  aborted.abort();
  signal.throwIfAborted();
}
