/** Task queue of workflows, and of activities that use only the database. */
export const PLATFORM_TASK_QUEUE = 'platform';

/** Task queue that only the worker on this Docker host serves. */
export const containersTaskQueue = (host: string): string => `containers-${host}`;

/**
 * Task queue for starts of agents on this Docker host. They wait for their turn, so a queue of their own
 * keeps stops and repairs from waiting.
 */
export const startsTaskQueue = (host: string): string => `starts-${host}`;

/**
 * Task queue for heartbeats of the agents on this Docker host. Answers may take a minute, so a queue of
 * their own keeps calls to Docker from waiting.
 */
export const heartbeatsTaskQueue = (host: string): string => `heartbeats-${host}`;

/** Task queue for sending mails, separate because a slow mail server may block it. */
export const MAIL_TASK_QUEUE = 'mail';

/** Task queue for payments on chains; only its worker has the operator's key. */
export const PAYMENTS_TASK_QUEUE = 'payments';

/** Id of the only run that signs for an address on a chain; `signerId` names both. */
export const chainSignerId = (signerId: string): string => `chain-signer-${signerId}`;

/** Id of an agent's supervisor; Temporal permits only one run under an id. */
export const superviseAgentId = (agentId: string): string => `supervise-agent-${agentId}`;

/** Id of the provisioning that a supervisor's operation runs. */
export const provisionAgentId = (agentId: string): string => `provision-agent-${agentId}`;

/** Id of the repair that an agent's supervisor runs: one at a time. */
export const repairAgentId = (agentId: string): string => `repair-agent-${agentId}`;

/** Id of the run that applies a security event token of the identity provider; `id` is its row's. */
export const applySecurityEventId = (id: string): string => `risc-${id}`;

/** Id of the run that pays a split; `id` is its row's. */
export const payRoyaltySplitId = (id: string): string => `royalty-split-${id}`;

/** Id of a payment session's run; `id` is its row's. */
export const settlePaymentSessionId = (id: string): string => `payment-session-${id}`;

/** Id of the schedule that reconciles a Docker host; its runs have the time appended. */
export const reconcileHostId = (host: string): string => `reconcile-${host}`;

/** Id of the schedule of a user's heartbeat. */
export const heartbeatScheduleId = (userId: string): string => `heartbeat-${userId}`;

/** Id of a heartbeat of a user's agents; the schedule appends the time. */
export const sendHeartbeatsId = (userId: string): string => `send-heartbeats-${userId}`;

/** Id of the run that sends a mail. */
export const sendMailId = (mailId: string): string => `send-mail-${mailId}`;

/** Id of the run that clones an agent; `id` is the clone's. */
export const cloneAgentId = (id: string): string => `clone-agent-${id}`;

/** Id of an account's deletion: one run, however often it is requested. */
export const deleteAccountId = (userId: string): string => `delete-account-${userId}`;
