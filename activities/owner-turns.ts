import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { OwnerQuestion, OwnerTurns, TurnEnd } from '../src/agents/chat/owner-turns.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import type { FairLimiter, Release } from '../src/lib/fair-limiter.js';
import type { AgentRef } from '../src/types/agent-ref.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/** Milliseconds that a turn waits for its place on the host (`workflows/retries.ts`). */
const MAX_WAIT_MS = 10 * 60_000;

/** Milliseconds for which a patient turn is repeated, and the time between two attempts. */
const PATIENCE_MS = 55 * 60_000;
const PATIENT_RETRY = '1 minute';

const NO_PLACE: TurnEnd = {
  kind: 'skipped',
  reason: "The agent's host was busy with other turns for too long",
  isPassing: true,
};

/** A turn as workflow histories have it. */
export interface OwnerTurn {
  readonly id: string;
  readonly agent: AgentRef;
}

/** The rows of an area's turns: texts stay in the database, and out of workflow histories. */
export interface TurnArea {
  /** Returns the question of a turn; undefined if the turn is over. */
  question(turn: OwnerTurn): Promise<OwnerQuestion | undefined>;
  /** Stores the end of a turn. Idempotent. */
  finish(turn: OwnerTurn, end: TurnEnd): Promise<void>;
}

interface TurnManner {
  /**
   * True for a turn that waits until its agent, which should run, can receive the question
   * (`retries.emailTurn`).
   */
  readonly isPatient?: boolean;
}

interface HostParts {
  readonly turns: Pick<OwnerTurns, 'ask'>;
  readonly limiters: Pick<HostLimiters, 'turns'>;
}

/**
 * Returns the activity that sends a turn's question to an agent of this host, at most once
 * (`retries.ownerTurn`).
 */
export const askInTurn =
  ({ limiters, turns }: HostParts, area: TurnArea, { isPatient = false }: TurnManner = {}) =>
  (turn: OwnerTurn): Promise<TurnEnd['kind']> =>
    asApplicationFailure(() =>
      heartbeating(async () => {
        const { cancellationSignal } = Context.current();
        const { agent, id } = turn;
        const waits = isPatient && waitedMs() < PATIENCE_MS;
        const release = await placeOf(limiters.turns, agent.userId);
        try {
          const question = await area.question(turn);
          if (!question) return 'skipped';
          const end = release
            ? await turns.ask(agent, { ...question, id, retractsUnsent: waits }, cancellationSignal)
            : NO_PLACE;
          if (waits && end.kind === 'skipped' && end.isPassing) throw passing(end.reason);
          await area.finish(turn, end);
          return end.kind;
        } finally {
          release?.();
        }
      }),
    );

/** Returns the activity that ends a turn that its host does not carry out; runs anywhere, as a record. */
export const endLostTurn =
  (turns: Pick<OwnerTurns, 'endOf'>, area: TurnArea) =>
  (turn: OwnerTurn): Promise<TurnEnd['kind']> =>
    asApplicationFailure(async () => {
      const { agent, id } = turn;
      const question = await area.question(turn);
      if (!question) return 'skipped';
      const { conversation } = question;
      const end = await turns.endOf(agent, { id, conversation });
      await area.finish(turn, end);
      return end.kind;
    });

/** Returns the milliseconds between the activity's first attempt and this one. */
function waitedMs(): number {
  const { currentAttemptScheduledTimestampMs, scheduledTimestampMs } = Context.current().info;
  return currentAttemptScheduledTimestampMs - scheduledTimestampMs;
}

const passing = (message: string) =>
  ApplicationFailure.create({ message, type: 'AgentAway', nextRetryDelay: PATIENT_RETRY });

/** Waits for a place of the owner; undefined if none became free in time. */
async function placeOf(limiter: FairLimiter, owner: string): Promise<Release | undefined> {
  const { cancellationSignal } = Context.current();
  const signal = AbortSignal.any([cancellationSignal, AbortSignal.timeout(MAX_WAIT_MS)]);
  try {
    return await limiter.acquire({ owner, signal });
  } catch (error) {
    if (cancellationSignal.aborted) throw error;
    return undefined;
  }
}
