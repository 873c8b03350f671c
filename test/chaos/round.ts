import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import { kill } from './kills.js';
import { create, desiredAfter, request } from './operations.js';
import type { AgentPlan, RoundPlan } from './plan.js';
import type { Site } from './site.js';
import { type Expected, problemsOf, notifiedOf } from './verdict.js';

/** Time limit for recovery: two repairs of 35 seconds each, and an engine that was unavailable. */
const SETTLE_MS = 150_000;

export interface RoundResult {
  readonly plan: RoundPlan;
  /** True if there was something to kill. */
  readonly killed: boolean;
  /** Reasons of agents in error and of failed operations. */
  readonly reported: readonly string[];
  /** Problems found; empty if all is well. */
  readonly problems: readonly string[];
  readonly seconds: number;
}

/** Runs an operation on some agents, kills something during it, and then removes the agents. */
export async function runRound(site: Site, plan: RoundPlan): Promise<RoundResult> {
  const begun = performance.now();
  const round = new Round(site, plan);
  const problems: string[] = [];
  const reported: string[] = [];
  let killed = false;
  try {
    await round.prepare();
    killed = await round.hurt();
    problems.push(...(await round.settle()));
    reported.push(...(await round.reported()));
  } catch (error) {
    problems.push(String(error));
  }
  try {
    await round.removeAll();
    problems.push(...(await round.settle()));
  } catch (error) {
    problems.push(String(error));
  }
  const seconds = Math.round((performance.now() - begun) / 1_000);
  return { plan, killed, reported, problems: [...new Set(problems)], seconds };
}

class Round {
  readonly #expected: (Expected | undefined)[];

  readonly #site: Site;
  readonly #plan: RoundPlan;

  constructor(site: Site, plan: RoundPlan) {
    this.#site = site;
    this.#plan = plan;

    this.#expected = plan.agents.map(() => undefined);
  }

  /** Brings the agents to the state in which their operation begins. */
  async prepare(): Promise<void> {
    if (this.#plan.operation === 'provision') return;
    await this.#forEach(async (index) => this.#make(index));
    await this.#untilWell();
    await this.#forEach(async (index, { stopped }) => {
      const { agentId } = this.#at(index);
      if (!stopped) return;
      await request(this.#site, agentId, 'stop', { broken: false });
      this.#expected[index] = { agentId, desired: 'stopped', operations: ['provision', 'stop'] };
    });
    await this.#untilWell();
  }

  /**
   * Kills during the operations.
   * @returns true if there was something to kill.
   */
  async hurt(): Promise<boolean> {
    const [killed] = await Promise.all([
      delay(this.#plan.killAfterMs).then(() =>
        kill(this.#site, this.#plan.kill, () => this.#expected[0]?.agentId),
      ),
      this.#forEach(async (index, agent) => {
        await delay(agent.afterMs);
        await this.#operate(index, agent);
      }),
    ]);
    return killed;
  }

  /**
   * Waits until all agents are well.
   * @returns the problems left when the time is over.
   */
  async settle(): Promise<string[]> {
    let problems: string[] = [];
    await poll(
      async () => {
        problems = await this.#problems();
        return problems.length === 0 || undefined;
      },
      { timeoutMs: SETTLE_MS, everyMs: 250 },
    );
    return problems;
  }

  async removeAll(): Promise<void> {
    await Promise.all(
      this.#expected.map(async (each, index) => {
        if (!each || each.desired === 'deleted') return;
        const { agentId, operations } = each;
        await request(this.#site, agentId, 'delete', { broken: false });
        this.#expected[index] = {
          agentId,
          desired: 'deleted',
          operations: [...operations, 'delete'],
        };
      }),
    );
  }

  reported(): Promise<string[]> {
    return notifiedOf(
      this.#site,
      this.#expected.flatMap((each) => (each ? [each.agentId] : [])),
    );
  }

  async #operate(index: number, agent: AgentPlan): Promise<void> {
    const { operation } = this.#plan;
    if (operation === 'provision') return this.#make(index);
    const { agentId, operations } = this.#at(index);
    await request(this.#site, agentId, operation, agent);
    this.#expected[index] = {
      agentId,
      desired: desiredAfter(operation, agent),
      operations: operations.includes(operation) ? operations : [...operations, operation],
    };
  }

  async #make(index: number): Promise<void> {
    const agentId = await create(this.#site, `chaos-${this.#plan.seed}-${index}`);
    this.#expected[index] = { agentId, desired: 'running', operations: ['provision'] };
  }

  async #untilWell(): Promise<void> {
    const problems = await this.settle();
    if (problems.length > 0) throw new Error(`Before anything was killed: ${problems.join('; ')}`);
  }

  async #problems(): Promise<string[]> {
    try {
      const all = await Promise.all(
        this.#expected.map(async (each) => {
          if (!each) return [];
          const problems = await problemsOf(this.#site, each);
          return problems.map((problem) => `${each.agentId}: ${problem}`);
        }),
      );
      return all.flat();
    } catch (error) {
      return [`it cannot be seen: ${String(error)}`]; // the killed part is restarting
    }
  }

  async #forEach(work: (index: number, agent: AgentPlan) => Promise<void>): Promise<void> {
    await Promise.all(this.#plan.agents.map((agent, index) => work(index, agent)));
  }

  #at(index: number): Expected {
    const expected = this.#expected[index];
    if (!expected) throw new Error('The agent has not been created yet');
    return expected;
  }
}
