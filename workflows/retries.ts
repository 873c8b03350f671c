import type { ActivityOptions, LocalActivityOptions, Priority } from '@temporalio/common';

/**
 * Priority of requested work, ahead of the platform's own work with Temporal's default (3). At equal priority
 * Temporal is fair to owners, by the fairness key of their supervisors.
 */
export const REQUESTED: Priority = { priorityKey: 2 };

/**
 * 20 s in all, because the worker holds the workflow that long. An attempt outlasts a statement
 * (`src/platform/database/database.ts`), so that no attempt overlaps another. The number of attempts is
 * limited as well: the SDK ignores the limit of the whole time if it is reached during a pause.
 */
export const records: LocalActivityOptions = {
  startToCloseTimeout: '20 seconds',
  scheduleToCloseTimeout: '20 seconds',
  localRetryThreshold: '20 seconds',
  retry: { initialInterval: '250 milliseconds', maximumAttempts: 6 },
};

/** On any worker, without limit: no result can be reported without the database. */
export const recordsAnywhere: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '10 seconds' },
};

/**
 * Short calls to Docker, retried for 5 minutes to survive its restart, without queue time. If Docker hangs,
 * `activities/docker-activity.ts` ends the activity after 5 minutes. A cancellation waits, because a call in
 * flight cannot be undone.
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
  priority: REQUESTED,
};

/**
 * Docker calls of the watchdog, retried until Docker is back, because no client waits, or until Docker has
 * refused 35 times (`activities/docker-activity.ts`).
 */
export const endlessDockerCall: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '250 milliseconds', maximumInterval: '10 seconds' },
};

/** The timeout includes the wait for a turn and is never reached: the activity limits each call. */
export const agentStart: ActivityOptions = { ...dockerCall, startToCloseTimeout: '1 day' };

/** Start of an agent by the watchdog, retried until Docker is back. */
export const endlessAgentStart: ActivityOptions = {
  ...endlessDockerCall,
  startToCloseTimeout: '1 day',
};

/** A measurement of an agent, for which its user waits. */
export const measurement: ActivityOptions = {
  startToCloseTimeout: '20 seconds',
  scheduleToCloseTimeout: '20 seconds',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '5 seconds' },
  priority: REQUESTED,
};

/** A signature, for which a user waits, and without which the verification ends as well. */
export const attestation: ActivityOptions = {
  startToCloseTimeout: '5 seconds',
  scheduleToCloseTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '2 seconds' },
  priority: REQUESTED,
};

/** A pull waits for its turn. The activity limits it to 20 minutes over all attempts. */
export const imageCall: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '1 second', maximumInterval: '10 seconds', maximumAttempts: 35 },
  priority: REQUESTED,
};

/** 60 s from the container's start, up to 5 minutes while the start makes progress. */
export const readinessWait: ActivityOptions = {
  startToCloseTimeout: '6 minutes',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '250 milliseconds', maximumInterval: '5 seconds', maximumAttempts: 10 },
  priority: REQUESTED,
};

/** Removal of an agent's leftovers, retried while Docker is down; fails after half an hour of refusals. */
export const removal: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
  priority: REQUESTED,
};

/** Limited to 10 minutes, because the provisioning's failure must be reported eventually. */
export const compensation: ActivityOptions = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: '10 seconds',
  retry: {
    initialInterval: '500 milliseconds',
    maximumInterval: '10 seconds',
    maximumAttempts: 65,
  },
  priority: REQUESTED,
};

/**
 * A check retried with `nextRetryDelay` while nothing changes, which adds no events to the history. The
 * interval must not be below that delay, and the retries must not be limited.
 */
export const healthWatch: ActivityOptions = {
  startToCloseTimeout: '45 seconds',
  cancellationType: 'TRY_CANCEL',
  retry: { initialInterval: '2 seconds', backoffCoefficient: 1, maximumInterval: '1 day' },
};

/** A check of an agent that may be unhealthy; waits until Docker is available. */
export const observation: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'TRY_CANCEL',
  retry: { initialInterval: '1 second', backoffCoefficient: 1, maximumInterval: '1 minute' },
};

/** Limited because the end of its operation must be reported eventually. */
export const boundedObservation: ActivityOptions = {
  ...observation,
  scheduleToCloseTimeout: '6 minutes',
};

/**
 * Checks every few seconds until the state changes, a day at a time. A thousand may run for days; a killed
 * worker is detected as slowly as between two checks of a healthy agent.
 */
export const degradedWatch: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '2 minutes',
  cancellationType: 'TRY_CANCEL',
  retry: { initialInterval: '1 second', backoffCoefficient: 1, maximumInterval: '1 minute' },
};

/** Optional details of a crash, for which its repair must not wait long. */
export const crashReport: ActivityOptions = {
  startToCloseTimeout: '5 seconds',
  scheduleToCloseTimeout: '10 seconds',
  retry: { initialInterval: '250 milliseconds' },
};

/**
 * Never retried because any attempt may have cost tokens. The timeout includes up to 5 minutes for its turn.
 */
export const heartbeat: ActivityOptions = {
  scheduleToStartTimeout: '5 minutes',
  startToCloseTimeout: '375 seconds',
  retry: { maximumAttempts: 1 },
};

/**
 * A turn on behalf of an agent's owner: up to 10 minutes in the queue, 10 for the answer and 5 for storage.
 * Retries are safe, because the activity sends the question at most once.
 */
export const ownerTurn: ActivityOptions = {
  scheduleToStartTimeout: '10 minutes',
  scheduleToCloseTimeout: '45 minutes',
  startToCloseTimeout: '26 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds', maximumAttempts: 20 },
};

/** A turn that waits up to an hour for its agent or its host (`activities/owner-turns.ts`), and its last attempt. */
export const emailTurn: ActivityOptions = {
  ...ownerTurn,
  scheduleToStartTimeout: '1 hour',
  scheduleToCloseTimeout: '95 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds', maximumAttempts: 100 },
};

/** 30 minutes over all attempts. */
export const volumeCopy: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '10 seconds',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds', maximumAttempts: 10 },
  priority: REQUESTED,
};

/** A pass over a host; the next pass handles the rest. */
export const reconciliation: ActivityOptions = {
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '2 seconds', maximumAttempts: 3 },
};

/** Removal of old rows in batches, for minutes; the next pass handles the rest. */
export const retention: ActivityOptions = {
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumAttempts: 3 },
};

/** A check page by page, for minutes; the next pass handles pages that could not be read. */
export const ledgerCheck: ActivityOptions = retention;

/** A mail, retried for a day, queue time included. */
export const mail: ActivityOptions = {
  startToCloseTimeout: '2 minutes',
  scheduleToCloseTimeout: '1 day',
  retry: { initialInterval: '10 seconds', maximumInterval: '15 minutes' },
};

/** Retried without limit: a Docker host may be down for days. */
export const accountDeletion: ActivityOptions = {
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '1 minute' },
};

/** A day at a time without limit: a node may be down that long. */
export const paying: ActivityOptions = {
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '15 seconds' },
};

/**
 * A check of a process that others end, such as a clone's payment; retried with its own delay until the end.
 */
export const untilOver: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
};

/** A message to another workflow about data already in the database, retried until delivered. */
export const handingOver: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
};

/** Calls of the payment processor, retried until it answers; a buyer waits for its first attempt. */
export const processorCall: ActivityOptions = {
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '5 minutes' },
};

/** A pass over subscriptions and checkouts, for minutes; the next pass handles the rest. */
export const billingPass: ActivityOptions = retention;

/** A delivery of the bus, retried for a day, queue time included. */
export const busDelivery: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '1 day',
  retry: { initialInterval: '5 seconds', maximumInterval: '30 minutes' },
};

/**
 * A call of the provider of agents' e-mails. An answer is retried under its key, which the provider recognizes for a
 * day; queue time included.
 */
export const emailCall: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '20 hours',
  retry: { initialInterval: '1 second', maximumInterval: '10 minutes' },
};

/** A request for a video: the activity sends it at most once. */
export const videoRequest: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '10 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
};

/** A reading of a prediction, which the next reading repeats. */
export const videoCheck: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '10 seconds' },
};

/** The download of a video's file, with 10 minutes for each attempt. */
export const videoFile: ActivityOptions = {
  startToCloseTimeout: '11 minutes',
  scheduleToCloseTimeout: '40 minutes',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '2 seconds', maximumInterval: '1 minute', maximumAttempts: 12 },
};

/** Ends a prediction that takes too long; its owner does not wait for that. */
export const videoCancel: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '5 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
};
