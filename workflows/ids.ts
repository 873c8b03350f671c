/** The task queue of the workflows and of what touches only the database. */
export const PLATFORM_TASK_QUEUE = 'platform';

/** The task queue that only the worker on this Docker host serves. */
export const containersTaskQueue = (host: string): string => `containers-${host}`;

/**
 * The task queue of what starts agents on this Docker host. They wait for their turn: on a queue of
 * their own they keep no stop and no repair waiting.
 */
export const startsTaskQueue = (host: string): string => `starts-${host}`;

/**
 * The task queue of what asks the agents on this Docker host. Answers may take a minute: on a queue
 * of their own they keep no call to Docker waiting.
 */
export const heartbeatsTaskQueue = (host: string): string => `heartbeats-${host}`;

/**
 * The task queue of what sends mails. A server that keeps them waiting keeps nothing else: it is a queue
 * of their own.
 */
export const MAIL_TASK_QUEUE = 'mail';

/** The task queue of what makes payments on chains: only its worker has the operator's key. */
export const PAYMENTS_TASK_QUEUE = 'payments';

/** The one run that signs for an address on a chain: `signerId` names both. */
export const chainSignerId = (signerId: string): string => `chain-signer-${signerId}`;

/** The one supervisor of an agent: a second one cannot be started under the same id. */
export const superviseAgentId = (agentId: string): string => `supervise-agent-${agentId}`;

/** The provisioning that an operation of the supervisor runs. */
export const provisionAgentId = (agentId: string): string => `provision-agent-${agentId}`;

/** The repair that an agent's supervisor runs: one at a time. */
export const repairAgentId = (agentId: string): string => `repair-agent-${agentId}`;

/** The run that applies what one token of the identity provider told: `id` is that of its row. */
export const applySecurityEventId = (id: string): string => `risc-${id}`;

/** The run that pays a split: `id` is that of its row. */
export const payRoyaltySplitId = (id: string): string => `royalty-split-${id}`;

/** The run of a payment session: `id` is that of its row. */
export const settlePaymentSessionId = (id: string): string => `payment-session-${id}`;

/** The schedule that reconciles a Docker host, and its runs, which have the time added to it. */
export const reconcileHostId = (host: string): string => `reconcile-${host}`;

/** The schedule of a user's heartbeat. */
export const heartbeatScheduleId = (userId: string): string => `heartbeat-${userId}`;

/** One heartbeat of a user's agents; the schedule adds the time to it. */
export const sendHeartbeatsId = (userId: string): string => `send-heartbeats-${userId}`;

/** The run that sends a mail. */
export const sendMailId = (mailId: string): string => `send-mail-${mailId}`;

/** The run that makes a clone of an agent: `id` is the clone's own. */
export const cloneAgentId = (id: string): string => `clone-agent-${id}`;

/** The deletion of an account: one, however often it is asked for. */
export const deleteAccountId = (userId: string): string => `delete-account-${userId}`;
