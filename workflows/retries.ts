import type { ActivityOptions, LocalActivityOptions, Priority } from '@temporalio/common';

/**
 * Somebody waits for it: before what the platform does by itself, which has Temporal's usual one (3).
 * Among equals Temporal is fair to the owners, by the key that supervisors are started with.
 */
export const ASKED_FOR: Priority = { priorityKey: 2 };

/**
 * The database, asked by the worker that has the workflow: 20 s in all, because so long the worker
 * holds it. An attempt is given more than a statement may take (`src/platform/database/database.ts`), so that
 * none is made beside one that may still be carried out. All are idempotent.
 *
 * The attempts are counted, too: the SDK forgets the bound of all when it is reached in a pause.
 */
export const records: LocalActivityOptions = {
  startToCloseTimeout: '20 seconds',
  scheduleToCloseTimeout: '20 seconds',
  localRetryThreshold: '20 seconds',
  retry: { initialInterval: '250 milliseconds', maximumAttempts: 6 },
};

/**
 * The same, asked by any worker: nothing can be told truthfully without the database, so this goes on
 * until one of them reaches it.
 */
export const recordsAnywhere: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '10 seconds' },
};

/**
 * Short calls to Docker: retried past a restart of it, for 5 minutes, and then told as a failure. The
 * attempts are the bound, so that the time in a queue does not count; where Docker hangs the activity
 * ends after 5 minutes of them (`activities/docker-activity.ts`). The
 * heartbeat finds a worker that was killed; a cancellation waits for the call, since what is to be
 * undone must not be under way.
 */
export const dockerCall: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: {
    initialInterval: '250 milliseconds',
    maximumInterval: '10 seconds',
    maximumAttempts: 35,
  },
  priority: ASKED_FOR,
};

/**
 * The same for the watchdog, whom nobody waits for: a Docker daemon that is away is no fault of the
 * agent's, so this goes on until it is back; or until Docker has refused it 35 times
 * (`activities/docker-activity.ts`).
 */
export const endlessDockerCall: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '250 milliseconds', maximumInterval: '10 seconds' },
};

/**
 * The start of an agent, in its turn: the wait for that is part of it, so the timeout is one that
 * nothing comes near. The work itself bounds each call, and gives its turn back after 60 s.
 */
export const agentStart: ActivityOptions = { ...dockerCall, startToCloseTimeout: '1 day' };

/** The same for the watchdog, until Docker is back. */
export const endlessAgentStart: ActivityOptions = {
  ...endlessDockerCall,
  startToCloseTimeout: '1 day',
};

/**
 * A pull may take long, and waits for its turn: the activity bounds it by 20 minutes over all
 * attempts, so the timeout is one that nothing comes near.
 */
export const imageCall: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '1 second', maximumInterval: '10 seconds', maximumAttempts: 35 },
  priority: ASKED_FOR,
};

/**
 * Waits 60 s from the container's start, wherever the worker that waits was restarted, and up to 5
 * minutes for what makes progress.
 */
export const readinessWait: ActivityOptions = {
  startToCloseTimeout: '6 minutes',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '250 milliseconds', maximumInterval: '5 seconds', maximumAttempts: 10 },
  priority: ASKED_FOR,
};

/**
 * Taking away what is left of an agent goes on until it is gone, however long Docker is out; where that is
 * there and refuses it, it has failed after half an hour.
 */
export const removal: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
  priority: ASKED_FOR,
};

/** Undoing a failed provisioning: 10 minutes, because the failure has to be told at some point. */
export const compensation: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  retry: {
    initialInterval: '500 milliseconds',
    maximumInterval: '10 seconds',
    maximumAttempts: 65,
  },
  priority: ASKED_FOR,
};

/**
 * A check that is retried by `nextRetryDelay` as long as nothing changed, which leaves no event in
 * the history. The interval may not be below that delay, and nothing may end the retries.
 */
export const healthWatch: ActivityOptions = {
  startToCloseTimeout: '45 seconds',
  cancellationType: 'TRY_CANCEL',
  retry: { initialInterval: '2 seconds', backoffCoefficient: 1, maximumInterval: '1 day' },
};

/** A look at an agent that may not be well: it waits for a Docker daemon that is away. */
export const look: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'TRY_CANCEL',
  retry: { initialInterval: '1 second', backoffCoefficient: 1, maximumInterval: '1 minute' },
};

/** The same for an operation, whose end has to be told at some point. */
export const boundedLook: ActivityOptions = { ...look, scheduleToCloseTimeout: '6 minutes' };

/**
 * Looks every few seconds until something changes, a day at a time. There may be a thousand of them
 * for days: a killed worker's are missed for as long as between two checks of a healthy agent.
 */
export const degradedWatch: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '2 minutes',
  cancellationType: 'TRY_CANCEL',
  retry: { initialInterval: '1 second', backoffCoefficient: 1, maximumInterval: '1 minute' },
};

/** What is good to know of a crash, and not worth holding up its repair for. */
export const crashReport: ActivityOptions = {
  startToCloseTimeout: '5 seconds',
  scheduleToCloseTimeout: '10 seconds',
  retry: { initialInterval: '250 milliseconds' },
};

/**
 * A question to an agent may have cost tokens, whatever became of it: it is never asked again. Its wait
 * for a turn in the worker, 5 minutes, is part of it.
 */
export const heartbeat: ActivityOptions = {
  scheduleToStartTimeout: '5 minutes',
  startToCloseTimeout: '375 seconds',
  retry: { maximumAttempts: 1 },
};

/** The same for copying a memory: 30 minutes over all attempts. */
export const volumeCopy: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds', maximumAttempts: 10 },
  priority: ASKED_FOR,
};

/** A pass over a host: what it does not come to is left to the next. */
export const reconciliation: ActivityOptions = {
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '2 seconds', maximumAttempts: 3 },
};

/** What is old is removed in batches, for minutes: what it does not come to is left to the next pass. */
export const retention: ActivityOptions = {
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumAttempts: 3 },
};

/** The ledger is read page by page, for minutes: what cannot be read is left to the next pass. */
export const ledgerCheck: ActivityOptions = {
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumAttempts: 3 },
};

/** A mail is offered to its server for a day, the time in the queue included. */
export const mail: ActivityOptions = {
  startToCloseTimeout: '2 minutes',
  scheduleToCloseTimeout: '1 day',
  retry: { initialInterval: '10 seconds', maximumInterval: '15 minutes' },
};

/** What an account leaves is waited for as long as it takes: a Docker host may be away for days. */
export const accountDeletion: ActivityOptions = {
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '1 minute' },
};

/** Payments are made as long as it takes, a day at a time: a node may be away for as long. */
export const paying: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '15 seconds' },
};

/**
 * One look at what ends without us, a clone's payment or a session's debits: it is retried for as long as
 * that is not over, by its own delay.
 */
export const untilOver: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
};

/** Telling another workflow what the database has already: it goes on until that was heard. */
export const handingOver: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
};
