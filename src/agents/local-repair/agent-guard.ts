import { setTimeout as delay } from 'node:timers/promises';
import type { AgentRef } from '../../types/agent-ref.js';
import type { PastTransition, WatchdogMemory } from '../../types/watchdog.js';
import { setBounded } from '../../lib/bounded-map.js';
import type { HostJournal } from './host-journal.js';
import type { JournalEntry } from './journal-entry.js';

/** A disk that takes longer than this keeps nobody waiting. */
const WRITE_MS = 5_000;

/** The container that runs an agent, and the volumes in it. */
export interface WatchedContainer {
  readonly id: string;
  readonly volumes: readonly string[];
}

/** The agent's host has repaired it meanwhile: its supervisor has to learn that first. */
export class RepairedLocallyError extends Error {
  override readonly name = 'RepairedLocallyError';

  constructor() {
    super('The host has repaired the agent by itself meanwhile');
  }
}

/** Agents of which the last step is remembered. */
const MAX_REMEMBERED = 10_000;

interface Occupation {
  /** Steps of the supervisor that are under way. */
  steps: number;
  local: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
}

/**
 * Lets either an agent's supervisor or the local repair at its container, never both, and puts down
 * for the latter what the former does.
 */
export class AgentGuard {
  readonly #occupied = new Map<string, Occupation>();
  /** Numbers of the agents' last steps: what was seen before one may not be so any more. */
  readonly #lastSteps = new Map<string, number>();
  #steps = 0;
  readonly #journal: HostJournal;

  constructor(journal: HostJournal) {
    this.#journal = journal;
  }

  /**
   * Runs a step by which an operation changes the agent: a local repair ends first, and none begins
   * until a supervisor watches the agent again.
   */
  operation<T>(agentId: string, work: () => Promise<T>): Promise<T> {
    return this.#step(agentId, async ({ local }) => {
      local?.abort.abort();
      await local?.ended;
      const entry = this.#journal.get(agentId);
      // Before the container is touched, and on the disk.
      if (entry && entry.phase !== 'held') await this.#write({ ...entry, phase: 'held' });
      return work();
    });
  }

  /** The agent is no more. */
  async forget(agentId: string): Promise<void> {
    await this.#journal.delete(agentId);
  }

  /**
   * Runs a step of a repair, once a local one has ended.
   *
   * @param memory with which the gateway is killed, that is where an attempt begins.
   * @throws RepairedLocallyError when it has done anything that the supervisor does not know.
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

  /** Runs what does no harm to an agent that was repaired, once a local repair has ended. */
  afterRepair<T>(agentId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#step(agentId, async ({ local }) => {
      await endOf(local, signal);
      return work();
    });
  }

  /**
   * Runs a local repair, unless the supervisor has a step under way.
   *
   * @param work ends soon after its signal has aborted.
   * @returns whether it ran.
   */
  async locally(agentId: string, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const occupation = this.#occupation(agentId);
    if (occupation.steps > 0 || occupation.local) return false;
    const abort = new AbortController();
    const running = work(abort.signal);
    const ended = running.then(
      () => undefined,
      () => undefined, // thrown to whoever has asked for it
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

  /** Whether a local repair is under way: what is seen of the agent meanwhile is its doing. */
  isBusy(agentId: string): boolean {
    return this.#occupied.get(agentId)?.local !== undefined;
  }

  /** What was done here by itself, but for what the supervisor has taken in until this change. */
  past(agentId: string, takenIn: string | undefined): readonly PastTransition[] {
    const entry = this.#journal.get(agentId);
    if (!entry || entry.past.length === 0) return [];
    const known = entry.past.findIndex(({ id }) => id === takenIn) + 1;
    const past = entry.past.slice(known);
    if (known > 0) void this.#journal.set({ ...entry, past });
    return past;
  }

  /** To be told to `watched`: the supervisor's last step; undefined while one is under way. */
  glance(agentId: string): number | undefined {
    if ((this.#occupied.get(agentId)?.steps ?? 0) > 0) return undefined;
    return this.#lastSteps.get(agentId) ?? 0;
  }

  /**
   * The supervisor watches the agent, and it is well: from here on it should run.
   *
   * @param glance from before it was seen.
   * @param container asked only when something else is known until now.
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
    if (!found || this.glance(agentId) !== glance || this.isBusy(agentId)) return;
    const { id: containerId, volumes } = found;
    const past = this.#journal.get(agentId)?.past ?? [];
    await this.#write({ agentId, userId, containerId, volumes, phase: 'running', memory, past });
  }

  /** The container was started; if by a repair, that is how far it is. */
  async started(agentId: string): Promise<void> {
    const entry = this.#journal.get(agentId);
    if (entry?.phase === 'killed') await this.#write({ ...entry, phase: 'started' });
  }

  /** A crash was counted, of an agent that should run. */
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

/** @throws the signal's reason when that aborts first. */
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
