import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../dev/poll.js';
import { beginFault, doDeed } from './faults.js';
import { desiredBy, Ledger } from './ledger.js';
import type { LongAgentPlan, LongPlan } from './long-plan.js';
import { CHECK_INTERVAL_MS, type LongSite } from './long-site.js';
import { mark, problemsOfMark } from './marks.js';
import { create, requestFor } from './operations.js';
import { hostOf } from './site.js';
import { problemsOfSupervision, twoPasses } from './supervision.js';
import { problemsOfState, recordsOf, notifiedOf } from './verdict.js';

/** Milliseconds of requests before the fault, so that it interrupts operations in flight. */
const BEFORE_MS = 1_500;

/** Milliseconds for which clients continue after the fault. */
const INSIST_MS = 45_000;

/** Time limit for all agents to recover after the fault: two repairs, and processes that restart late. */
const SETTLE_MS = 240_000;

/** The time limit for slow images, which each occupy a processor before they listen, a few at a time. */
const SLOW_SETTLE_MS = 720_000;

/** Milliseconds after the second pass, in which the supervisors that it started make their first check. */
const AFTER_PASSES_MS = 45_000;

const MEMORY_MISSING = /memory is missing/;

export interface LongResult {
  readonly plan: LongPlan;
  /** Counts of the requests by answer. */
  readonly asked: string;
  readonly reports: readonly string[];
  readonly problems: readonly string[];
  readonly seconds: number;
}

/** Sends agents many requests during a long outage, and then removes the agents. */
export async function runLongRound(site: LongSite, plan: LongPlan): Promise<LongResult> {
  const begun = performance.now();
  const round = new LongRound(site, plan);
  const problems: string[] = [];
  let reports: string[] = [];
  const attempt = async (work: () => Promise<string[]>) => {
    try {
      problems.push(...(await work()));
    } catch (error) {
      problems.push(inWords(error));
    }
  };
  await attempt(() => round.prepare());
  if (problems.length === 0) {
    await attempt(() => round.hurt());
    await attempt(() => round.settle());
    await attempt(async () => {
      reports = await round.reports();
      return round.resetEmpty();
    });
  }
  await attempt(() => round.removeAll());
  const seconds = Math.round((performance.now() - begun) / 1_000);
  return { plan, asked: round.asked(), reports, problems: [...new Set(problems)], seconds };
}

class LongRound {
  readonly #ledger: Ledger;
  readonly #agentIds: string[] = [];
  readonly #marked = new Set<string>();
  #isHurt = false;

  readonly #site: LongSite;
  readonly #plan: LongPlan;

  constructor(site: LongSite, plan: LongPlan) {
    this.#site = site;
    this.#plan = plan;

    this.#ledger = new Ledger(site.api);
  }

  /** Brings the agents to the state in which the round begins. */
  async prepare(): Promise<string[]> {
    const { agents, seed, slow } = this.#plan;
    await Promise.all(
      agents.map(async (_, index) => {
        this.#agentIds[index] = await create(this.#site, `long-${seed}-${index}`);
      }),
    );
    const made = await this.#untilWell('made');
    if (made.length > 0) return made;
    for (const agentId of this.#agentIds) {
      const host = await hostOf(this.#site, agentId);
      if (!host) return [`${agentId} is on no host`];
      await mark(host.docker, agentId);
      this.#marked.add(agentId);
    }
    if (slow) await this.#forEach((index) => this.#ask(index, 'update', this.#site.versions.slow));
    const slowed = await this.#untilWell('slow');
    if (slowed.length > 0) return slowed;
    await this.#forEach(async (index, { stopped }) => {
      if (stopped) await this.#ask(index, 'stop');
    });
    return this.#untilWell('prepared');
  }

  /** Causes the fault, sends requests during it, and does the deed in the middle. */
  async hurt(): Promise<string[]> {
    const { createAt, deedAt, lastsMs } = this.#plan;
    const at = (moment: number) => delay(moment * (BEFORE_MS + lastsMs));
    const until = performance.now() + BEFORE_MS + lastsMs + INSIST_MS;
    // No client continues after the round is given up.
    const all = await Promise.allSettled([
      (async () => {
        await delay(BEFORE_MS);
        const end = await beginFault(this.#site, this.#plan, this.#agentIds);
        this.#isHurt = true;
        await delay(lastsMs);
        await end();
      })(),
      at(deedAt).then(() =>
        // The target has ended by itself, or its engine is unavailable.
        doDeed(this.#site, this.#plan, this.#agentIds[0] ?? '').catch(() => undefined),
      ),
      at(createAt).then(() => this.#createAndConfigure(until)),
      this.#forEach(async (index, agent) => {
        await at(agent.at);
        await this.#want(index, agent, until);
      }),
    ]);
    return all.flatMap((each) => (each.status === 'rejected' ? [inWords(each.reason)] : []));
  }

  /**
   * Waits until all agents are well.
   * @returns the problems left when the time is over.
   */
  async settle(): Promise<string[]> {
    const passes = twoPasses(this.#site).then(
      () => this.#unsupervised(),
      (error: unknown) => [String(error)],
    );
    const problems = await this.#untilWell('afterwards');
    return [...problems, ...(await passes)];
  }

  /** Resets an agent that lost its memory, and reports the loss, to an empty memory. */
  async resetEmpty(): Promise<string[]> {
    const emptied = this.#agentIds.find((agentId) => this.#hasLostMemory(agentId)) ?? '';
    const { agent } = await recordsOf(this.#site, emptied);
    if (agent?.status !== 'error') return [];
    this.#marked.delete(emptied);
    const request = { method: 'POST', path: `/api/agents/${emptied}/reset-empty` } as const;
    await this.#ledger.repeat(emptied, request, `${emptied}-reset`, performance.now() + INSIST_MS);
    const left = await this.#untilWell('reset');
    const { agent: after } = await recordsOf(this.#site, emptied);
    return after?.status === 'error' ? [...left, `still in error: ${after.statusReason}`] : left;
  }

  async removeAll(): Promise<string[]> {
    await Promise.all(
      this.#agentIds.map(async (agentId) => {
        const { agent } = await recordsOf(this.#site, agentId);
        if (!agent || agent.deletedAt !== null) return;
        const until = performance.now() + SETTLE_MS;
        const request = { method: 'DELETE', path: `/api/agents/${agentId}` } as const;
        await this.#ledger.repeat(agentId, request, `${agentId}-remove`, until);
      }),
    );
    return this.#untilWell('removed');
  }

  reports(): Promise<string[]> {
    return notifiedOf(this.#site, this.#agentIds);
  }

  asked(): string {
    const { accepted, refused, unsure } = this.#ledger.counts();
    return `${accepted} accepted, ${refused} refused, ${unsure} unsure`;
  }

  /** Requests an operation that must succeed, because every service is still available. */
  async #ask(index: number, operation: 'update' | 'stop', version = ''): Promise<void> {
    const agentId = this.#agentIds[index] ?? '';
    const request = requestFor(agentId, operation, { version, config: {} });
    const key = `${agentId}-before-${operation}`;
    await this.#ledger.repeat(agentId, request, key, performance.now() + INSIST_MS);
  }

  async #want(index: number, agent: LongAgentPlan, until: number): Promise<void> {
    const { broken, manner, operation } = agent;
    const agentId = this.#agentIds[index] ?? '';
    const { versions } = this.#site;
    const request = requestFor(agentId, operation, {
      version: broken ? versions.broken : versions.good,
      config: broken ? { runtime: { test: { exitAtStart: 3 } } } : { runtime: { test: {} } },
    });
    const ask = { repeats: this.#ledger.repeat, insists: this.#ledger.insist }[manner];
    await ask.call(this.#ledger, agentId, request, `${agentId}-${operation}`, until);
  }

  /** Creates an agent and, as soon as the creation is accepted, configures it. */
  async #createAndConfigure(until: number): Promise<void> {
    const key = `long-${this.#plan.seed}-late`;
    const agentId = Ledger.agentIdOf(key);
    this.#agentIds.push(agentId);
    const body = { name: key };
    const creation = { method: 'POST', path: '/api/agents', body } as const;
    if (!(await this.#ledger.repeat(agentId, creation, key, until))) return;
    const config = { runtime: { test: { note: 'at once' } } };
    const request = requestFor(agentId, 'configure', { version: '', config });
    await this.#ledger.insist(agentId, request, `${key}-configure`, until);
  }

  async #untilWell(when: string): Promise<string[]> {
    const problems = async () => [
      ...(await this.#ofEach((agentId) => this.#problemsOf(agentId))),
      ...(await this.#auditedRefusals()),
    ];
    return untilNone(when, problems, this.#plan.slow ? SLOW_SETTLE_MS : SETTLE_MS);
  }

  async #ofEach(problemsOf: (agentId: string) => Promise<string[]>): Promise<string[]> {
    const all = await Promise.all(
      this.#agentIds.map(async (agentId) => {
        const problems = await problemsOf(agentId);
        return problems.map((problem) => `${agentId}: ${problem}`);
      }),
    );
    return all.flat();
  }

  async #problemsOf(agentId: string): Promise<string[]> {
    const records = await recordsOf(this.#site, agentId);
    const { agent, operations } = records;
    const problems = this.#ledger.problemsOf(agentId, operations);
    if (!agent && !this.#ledger.isPromised(agentId)) return problems; // never created
    problems.push(...(await problemsOfState(this.#site, records, desiredBy(operations))));
    if (!agent) return problems;
    problems.push(
      ...(await problemsOfSupervision(this.#site, agent, operations, CHECK_INTERVAL_MS)),
    );
    if (agent.desired === 'deleted' || !this.#marked.has(agentId)) return problems;
    const docker = this.#site.hosts[agent.host as keyof LongSite['hosts']].docker;
    if (!this.#hasLostMemory(agentId)) {
      problems.push(...(await problemsOfMark(docker, agentId, records)));
    } else if (agent.status === 'active') {
      problems.push('its memory is gone, and it runs as if nothing were');
    } else if (agent.status === 'error' && !MEMORY_MISSING.test(agent.statusReason ?? '')) {
      problems.push(`its memory is gone, but the reported reason is: ${agent.statusReason}`);
    }
    return problems;
  }

  /** Reports whether the agent's memory was removed. */
  #hasLostMemory(agentId: string): boolean {
    return this.#isHurt && this.#plan.fault === 'memory removed' && agentId === this.#agentIds[0];
  }

  /** Returns agents that are unsupervised although two passes should have repaired that. */
  #unsupervised(): Promise<string[]> {
    const problems = () =>
      this.#ofEach(async (agentId) => {
        const { agent, operations } = await recordsOf(this.#site, agentId);
        if (!agent || agent.desired === 'deleted') return [];
        return problemsOfSupervision(this.#site, agent, operations, CHECK_INTERVAL_MS);
      });
    return untilNone('after two passes', problems, AFTER_PASSES_MS);
  }

  async #auditedRefusals(): Promise<string[]> {
    const ids = this.#ledger.refusedIds();
    if (ids.length === 0) return [];
    const rows = await this.#site.database.asPlatform().query<{ operation: string }>(
      `SELECT detail->>'operationId' AS operation FROM audit_log
         WHERE detail->>'operationId' = ANY ($ids)`,
      { ids },
    );
    return rows.map(
      ({ operation }) => `operation ${operation} was refused, and is in the audit log`,
    );
  }

  async #forEach(work: (index: number, agent: LongAgentPlan) => Promise<void>): Promise<void> {
    await Promise.all(this.#plan.agents.map((agent, index) => work(index, agent)));
  }
}

/**
 * Checks until there is no problem.
 * @returns the problems left when the time is over.
 */
async function untilNone(
  when: string,
  ask: () => Promise<string[]>,
  timeoutMs: number,
): Promise<string[]> {
  let problems: string[] = [];
  await poll(
    async () => {
      // A service that is restarting cannot be queried yet.
      problems = await ask().catch((error: unknown) => [`it cannot be seen: ${String(error)}`]);
      return problems.length === 0 || undefined;
    },
    { timeoutMs, everyMs: 1_000 },
  );
  return problems.map((problem) => `${when}: ${problem}`);
}

const inWords = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);
