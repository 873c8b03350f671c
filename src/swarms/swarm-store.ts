import type { OwnerQuestion, TurnEnd } from '../agents/chat/owner-turns.js';
import { returnMessages } from '../bus/daily-messages.js';
import type { Database, Statements } from '../platform/database/database.js';
import type { AgentRef } from '../types/agent-ref.js';
import {
  parseSwarmTurnId,
  swarmConversation,
  swarmTurnId,
  type MemberStatus,
  type MergeState,
  type SwarmStatus,
  type SwarmStrategy,
  type SwarmTurnRef,
} from '../types/swarms.js';
import { keptAnswer, memberText, mergeText } from './swarm-texts.js';

export interface SwarmTurn {
  readonly id: string;
  readonly agent: AgentRef;
}

/** The remaining turns of a round, without any text. */
export interface SwarmRound {
  readonly round: number;
  readonly strategy: SwarmStrategy;
  /** Members with a pending question, in order. */
  readonly turns: readonly SwarmTurn[];
  /** The coordinator's turn; undefined if none is needed, or the coordinator was removed. */
  readonly merge: SwarmTurn | undefined;
  readonly done: number;
  readonly total: number;
}

interface SwarmRow {
  readonly userId: string;
  readonly task: string;
  readonly strategy: SwarmStrategy;
  readonly coordinatorId: string;
  readonly status: SwarmStatus;
  readonly round: number;
  readonly merge: MergeState | null;
  readonly error: string | null;
  readonly reserved: number;
  readonly reservedOn: string | null;
  readonly sent: number;
}

interface MemberRow {
  readonly position: number;
  readonly agentId: string;
  readonly status: MemberStatus;
  readonly round: number;
  readonly output: string | null;
  readonly error: string | null;
}

const REMOVED = 'The agent was removed';
const ENDED = 'The swarm ended before the answer';

const SWARM = `user_id AS "userId", task, strategy, coordinator_id AS "coordinatorId", status, round, merge,
  error, reserved, reserved_on::text AS "reservedOn", sent`;

/** The rows of swarms, for their runs. Every method is idempotent. */
export class SwarmStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns the status of a swarm whose run may still have work, and its round. */
  async openOf(id: string): Promise<{ status: SwarmStatus; round: number } | undefined> {
    const [open] = await this.#database
      .asPlatform()
      .query<{ status: SwarmStatus; round: number }>(
        'SELECT status, round FROM swarms WHERE id = $id AND settled_at IS NULL',
        { id },
      );
    return open;
  }

  /** Begins a round, or finds one that has begun. Undefined if no question is pending. */
  begin(id: string): Promise<SwarmRound | undefined> {
    return this.#transaction(async (db) => {
      const [swarm] = await db.query<SwarmRow>(
        `UPDATE swarms SET status = 'running', started_at = coalesce(started_at, now())
          WHERE id = $id AND status IN ('pending', 'running') AND settled_at IS NULL
          RETURNING ${SWARM}`,
        { id },
      );
      if (!swarm) return undefined;
      await db.query(
        `UPDATE swarm_members m SET status = 'failed', error = '${REMOVED}', finished_at = now()
           FROM agents a
          WHERE m.swarm_id = $id AND m.status = 'waiting' AND a.id = m.agent_id
            AND (a.desired = 'deleted' OR a.deleted_at IS NOT NULL)`,
        { id },
      );
      const members = await db.query<MemberRow & { host: string; gone: boolean }>(
        `SELECT m.position, m.agent_id AS "agentId", m.status, a.host,
                a.desired = 'deleted' OR a.deleted_at IS NOT NULL AS gone
           FROM swarm_members m JOIN agents a ON a.id = m.agent_id
          WHERE m.swarm_id = $id ORDER BY m.position`,
        { id },
      );
      const { coordinatorId, round, strategy, userId } = swarm;
      const turnOf = (
        { agentId, host }: { agentId: string; host: string },
        part: SwarmTurnRef['part'],
      ): SwarmTurn => ({
        id: swarmTurnId({ swarmId: id, round, part }),
        agent: { agentId, userId, host },
      });
      const coordinator = members.find(({ agentId }) => agentId === coordinatorId);
      // In a sequence, no question is sent after a failed member.
      const failed = members.findIndex(({ status }) => status === 'failed');
      const due = strategy === 'sequential' && failed >= 0 ? members.slice(0, failed) : members;
      const isMerged = strategy === 'parallel' && coordinator !== undefined && !coordinator.gone;
      return {
        round,
        strategy,
        turns: due
          .filter(({ status }) => status === 'waiting' || status === 'running')
          .map((member) => turnOf(member, member.position)),
        merge: isMerged ? turnOf(coordinator, 'merge') : undefined,
        done: members.filter(({ status }) => status === 'done').length,
        total: members.length,
      };
    });
  }

  /** Returns the question of a turn; undefined unless the swarm runs, in the turn's round. */
  question({ id }: SwarmTurn): Promise<OwnerQuestion | undefined> {
    const turn = parseSwarmTurnId(id);
    return this.#transaction(async (db) => {
      const swarm = await lockRunning(db, turn);
      if (!swarm) return undefined;
      const text = await (turn.part === 'merge'
        ? mergeQuestion(db, turn, swarm)
        : memberQuestion(db, { ...turn, part: turn.part }, swarm));
      return text === undefined
        ? undefined
        : { conversation: swarmConversation(turn.swarmId), text };
    });
  }

  /** Stores the end of a turn. */
  finish({ id }: SwarmTurn, end: TurnEnd): Promise<void> {
    const turn = parseSwarmTurnId(id);
    return this.#transaction((db) =>
      turn.part === 'merge'
        ? finishMerge(db, turn, end)
        : finishMember(db, { ...turn, part: turn.part }, end),
    );
  }

  /** Ends a round whose turns have ended, and returns the messages that were not sent. */
  settle(id: string): Promise<SwarmStatus | undefined> {
    return this.#transaction(async (db) => {
      const [swarm] = await db.query<SwarmRow>(
        `SELECT ${SWARM} FROM swarms WHERE id = $id AND settled_at IS NULL FOR UPDATE`,
        { id },
      );
      if (!swarm) return undefined;
      await db.query(
        `UPDATE swarm_members SET status = 'failed', error = '${ENDED}', finished_at = now()
          WHERE swarm_id = $id AND status = 'running'`,
        { id },
      );
      const members = await membersOf(db, id);
      const { error, result, status } = outcomeOf(swarm, members);
      await db.query(
        `UPDATE swarms
            SET status = $status, error = $error, result = coalesce($result, result), settled_at = now(),
                finished_at = coalesce(finished_at, now()), reserved = 0, sent = 0
          WHERE id = $id`,
        { id, status, error, result },
      );
      const count = swarm.reserved - swarm.sent;
      if (count > 0 && swarm.reservedOn !== null) {
        await returnMessages(db, swarm.userId, { count, day: swarm.reservedOn });
      }
      return status;
    });
  }

  #transaction<T>(work: (db: Statements) => Promise<T>): Promise<T> {
    return this.#database.asPlatform().transaction(work);
  }
}

/** Locks a swarm against its cancellation, so that no question is sent after a cancellation. */
async function lockRunning(
  db: Statements,
  { round, swarmId }: SwarmTurnRef,
): Promise<SwarmRow | undefined> {
  const [swarm] = await db.query<SwarmRow>(
    `SELECT ${SWARM} FROM swarms
      WHERE id = $swarmId AND status = 'running' AND round = $round FOR UPDATE`,
    { swarmId, round },
  );
  return swarm;
}

const membersOf = (db: Statements, swarmId: string): Promise<MemberRow[]> =>
  db.query<MemberRow>(
    `SELECT position, agent_id AS "agentId", status, round, output, error
       FROM swarm_members WHERE swarm_id = $swarmId ORDER BY position`,
    { swarmId },
  );

type MemberTurn = SwarmTurnRef & { readonly part: number };

async function memberQuestion(
  db: Statements,
  { part: position, round, swarmId }: MemberTurn,
  { strategy, task }: SwarmRow,
): Promise<string | undefined> {
  const begun = await db.query(
    `UPDATE swarm_members SET status = 'running', round = $round, started_at = coalesce(started_at, now())
      WHERE swarm_id = $swarmId AND position = $position AND status IN ('waiting', 'running')
      RETURNING position`,
    { swarmId, position, round },
  );
  if (begun.length === 0) return undefined;
  if (strategy === 'parallel' || position === 0) return task;
  const before = (await membersOf(db, swarmId)).findLast(
    (member) => member.position < position && member.status === 'done',
  );
  return memberText(task, before?.output ?? undefined);
}

async function mergeQuestion(
  db: Statements,
  { swarmId }: SwarmTurnRef,
  { merge, task }: SwarmRow,
): Promise<string | undefined> {
  if (merge !== null && merge !== 'running') return undefined;
  const answers = (await membersOf(db, swarmId)).flatMap(({ output, status }) =>
    status === 'done' && output !== null ? [output] : [],
  );
  if (answers.length === 0) return undefined;
  await db.query(`UPDATE swarms SET merge = 'running' WHERE id = $swarmId`, { swarmId });
  return mergeText(task, answers);
}

async function finishMember(
  db: Statements,
  { part: position, round, swarmId }: MemberTurn,
  end: TurnEnd,
): Promise<void> {
  const answered = end.kind === 'answered';
  const [ended] = await db.query<{ position: number }>(
    `UPDATE swarm_members
        SET status = $status, output = $output, error = $error, finished_at = now()
      WHERE swarm_id = $swarmId AND position = $position AND round = $round AND status = 'running'
      RETURNING position`,
    {
      ...{ swarmId, position, round },
      status: answered ? 'done' : 'failed',
      output: answered ? keptAnswer(end.answer) : null,
      error: answered ? null : end.reason,
    },
  );
  if (!ended || position === 0 || end.kind === 'skipped') return;
  // The answer of the member before was sent with the question.
  await db.query(
    `UPDATE swarms SET sent = sent + 1 WHERE id = $swarmId AND strategy = 'sequential'`,
    { swarmId },
  );
}

async function finishMerge(
  db: Statements,
  { round, swarmId }: SwarmTurnRef,
  end: TurnEnd,
): Promise<void> {
  const answered = end.kind === 'answered';
  await db.query(
    `UPDATE swarms s
        SET merge = $merge, result = $result, error = $error,
            sent = s.sent + CASE WHEN $isRequested THEN (
              SELECT count(*)::integer FROM swarm_members m
               WHERE m.swarm_id = s.id AND m.status = 'done' AND m.round = s.round
                 AND m.agent_id <> s.coordinator_id) ELSE 0 END
      WHERE s.id = $swarmId AND s.round = $round AND s.merge = 'running'`,
    {
      ...{ swarmId, round },
      merge: answered ? 'done' : 'failed',
      result: answered ? keptAnswer(end.answer) : null,
      error: answered ? null : end.reason,
      isRequested: end.kind !== 'skipped',
    },
  );
}

interface Outcome {
  readonly status: SwarmStatus;
  readonly error: string | null;
  readonly result: string | null;
}

/** Returns the end of a round: the row's own if it was cancelled, otherwise by the strategy. */
function outcomeOf(swarm: SwarmRow, members: readonly MemberRow[]): Outcome {
  const { merge, status, strategy } = swarm;
  if (status === 'cancelled') return { status, error: null, result: null };
  const failed = (error: string): Outcome => ({ status: 'failed', error, result: null });
  if (strategy === 'parallel') {
    if (merge === 'done') return { status: 'completed', error: null, result: null };
    if (merge === 'failed') {
      return failed(`The coordinator did not merge the answers: ${swarm.error ?? ENDED}`);
    }
    return members.some((member) => member.status === 'done')
      ? failed('The answers were not sent to the coordinator')
      : failed('No member has answered');
  }
  const missing = members.find((member) => member.status !== 'done');
  if (missing) {
    return failed(
      `Member ${missing.position + 1} failed: ${missing.error ?? 'the task was not sent'}`,
    );
  }
  const last = members.at(-1);
  return last
    ? { status: 'completed', error: null, result: last.output }
    : failed('No member has answered');
}
