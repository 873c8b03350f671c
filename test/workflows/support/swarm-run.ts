import { randomUUID } from 'node:crypto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { TurnEnd } from '../../../src/agents/chat/owner-turns.js';
import type { SwarmRound, SwarmTurn } from '../../../src/swarms/swarm-store.js';
import type { SwarmStatus, SwarmStrategy } from '../../../src/types/swarms.js';
import { heartbeatsTaskQueue, runSwarmId } from '../../../workflows/ids.js';
import { cancelSwarm } from '../../../workflows/run-swarm-messages.js';
import type { runSwarm } from '../../../workflows/run-swarm.js';
import { runAlone } from './run-alone.js';

const HOST = 'swarm-host';

/** A host without a worker. */
const AWAY = 'away-host';

interface Options {
  readonly strategy: SwarmStrategy;
  readonly members: number;
  /** Rounds that are open one after the other. */
  readonly rounds?: number;
  /** Position of the member whose host is unreachable. */
  readonly away?: number;
}

/** A run of `runSwarm` with workers of its own, and the calls of its activities. */
export class SwarmRun {
  readonly id = randomUUID();
  readonly workflowId = runSwarmId(this.id);
  readonly made: string[] = [];
  /** Maximum number of turns in progress at a time. */
  mostAtOnce = 0;
  /** Runs a turn as the host does. */
  ask: (turn: SwarmTurn) => Promise<TurnEnd['kind']> = () => Promise.resolve('answered');
  readonly #options: Options;
  #round = 1;
  #atOnce = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  async run(
    environment: TestWorkflowEnvironment,
    bundle: WorkflowBundleWithSourceMap,
  ): Promise<SwarmStatus | undefined> {
    const activities = {
      beginSwarm: () => Promise.resolve(this.#begin()),
      settleSwarm: () => Promise.resolve(this.#settle()),
      endSwarmTurn: ({ id }: SwarmTurn): Promise<TurnEnd['kind']> => {
        this.made.push(`lost ${id}`);
        return Promise.resolve('skipped');
      },
    };
    const host = { askSwarmAgent: (turn: SwarmTurn) => this.#ask(turn) };
    return runAlone(
      environment,
      bundle,
      {
        workflowId: this.workflowId,
        activities,
        elsewhere: { taskQueue: heartbeatsTaskQueue(HOST), activities: host },
      },
      (workflows, started) =>
        workflows.execute<typeof runSwarm>('runSwarm', { ...started, args: [this.id] }),
    );
  }

  cancel(environment: TestWorkflowEnvironment, round = 1): Promise<void> {
    return environment.client.workflow.getHandle(this.workflowId).signal(cancelSwarm, round);
  }

  /** Reports whether the turn of the member whose host is unreachable waits for that host. */
  async isWaitingForHost(environment: TestWorkflowEnvironment): Promise<boolean> {
    const { events } = await environment.client.workflow.getHandle(this.workflowId).fetchHistory();
    const queue = heartbeatsTaskQueue(AWAY);
    return (events ?? []).some(
      (event) => event.activityTaskScheduledEventAttributes?.taskQueue?.name === queue,
    );
  }

  async #ask(turn: SwarmTurn): Promise<TurnEnd['kind']> {
    this.made.push(turn.id);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    try {
      return await this.ask(turn);
    } finally {
      this.#atOnce -= 1;
    }
  }

  #begin(): SwarmRound | undefined {
    const { away, members, rounds = 1, strategy } = this.#options;
    if (this.#round > rounds) return undefined;
    const turnOf = (part: number | 'merge', n: number): SwarmTurn => ({
      id: `${this.#round}/${part}`,
      agent: { agentId: `agent-${n}`, userId: 'user', host: part === away ? AWAY : HOST },
    });
    return {
      round: this.#round,
      strategy,
      turns: Array.from({ length: members }, (_, position) => turnOf(position, position + 1)),
      merge: strategy === 'parallel' ? turnOf('merge', 1) : undefined,
      done: 0,
      total: members,
    };
  }

  #settle(): SwarmStatus | undefined {
    const { rounds = 1 } = this.#options;
    if (this.#round > rounds) return undefined;
    this.made.push(`settle ${this.#round}`);
    this.#round += 1;
    return 'completed';
  }
}
