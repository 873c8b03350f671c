import {
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { SwarmRecordActivities, SwarmTurnActivities } from '../activities/swarms.js';
import type { TurnEnd } from '../src/agents/chat/owner-turns.js';
import type { SwarmRound, SwarmTurn } from '../src/swarms/swarm-store.js';
import type { SwarmStatus } from '../src/types/swarms.js';
import { failureReason } from './failure-reason.js';
import { heartbeatsTaskQueue } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';
import { cancelSwarm } from './run-swarm-messages.js';

/** Maximum number of members of a parallel swarm that work at a time. */
const AT_ONCE = 8;

/** Maximum number of rounds in one run: a retry may begin before the run of the round before has closed. */
const MAX_ROUNDS = 10;

/**
 * Runs a swarm, by the id of its row: sends the question to its members, and has the coordinator merge the
 * answers. All texts are in rows, so a new run continues with the rest. Returns the swarm's status after the
 * last round.
 */
export async function runSwarm(id: string): Promise<SwarmStatus | undefined> {
  const records = proxyRecords<SwarmRecordActivities>();
  let cancelledRound = 0;
  setHandler(cancelSwarm, (round) => {
    cancelledRound = Math.max(cancelledRound, round);
  });
  let status: SwarmStatus | undefined;
  for (let rounds = 0; rounds < MAX_ROUNDS; rounds++) {
    const round = await records.beginSwarm(id);
    if (round) await carryOut(round);
    const settled = await records.settleSwarm(id);
    if (settled === undefined) return status;
    status = settled;
  }
  return status;

  async function carryOut(round: SwarmRound): Promise<void> {
    let { done } = round;
    const show = () => setCurrentDetails(`${done} of ${round.total}`);
    const isOver = () => cancelledRound >= round.round;
    show();
    const askMember = async (turn: SwarmTurn): Promise<boolean> => {
      const isDone = (await ask(turn)) === 'answered';
      if (isDone) done += 1;
      show();
      return isDone;
    };
    const waiting = [...round.turns];
    if (round.strategy === 'sequential') {
      for (const turn of waiting) if (isOver() || !(await askMember(turn))) return;
      return;
    }
    const askInTurn = async () => {
      while (!isOver()) {
        const turn = waiting.shift();
        if (!turn) return;
        await askMember(turn);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
    if (round.merge && done > 0 && !isOver()) await ask(round.merge);
  }

  /** Sends a question to an agent on its host; a turn that the host does not run ends as lost. */
  async function ask(turn: SwarmTurn): Promise<TurnEnd['kind']> {
    const { agentId, host, userId } = turn.agent;
    const { askSwarmAgent } = proxyActivities<SwarmTurnActivities>({
      ...retries.ownerTurn,
      taskQueue: heartbeatsTaskQueue(host),
      priority: { fairnessKey: userId },
    });
    try {
      return await askSwarmAgent.executeWithOptions({ summary: `Agent ${agentId}` }, [turn]);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.warn('the host did not run the turn of an agent in a swarm', {
        reason: failureReason(error),
      });
      return records.endSwarmTurn(turn);
    }
  }
}
