/** Workflows, and activities that use only the database. */
export const PLATFORM_TASK_QUEUE = 'platform';

export const containersTaskQueue = (host: string): string => `containers-${host}`;

/** Starts of agents wait for their turn; a queue of their own keeps stops and repairs from waiting. */
export const startsTaskQueue = (host: string): string => `starts-${host}`;

/** Heartbeats may take a minute; a queue of their own keeps calls to Docker from waiting. */
export const heartbeatsTaskQueue = (host: string): string => `heartbeats-${host}`;

/** Separate because a slow mail server may block it. */
export const MAIL_TASK_QUEUE = 'mail';

/** Calls of the provider of agents' e-mails; separate because a slow one may block it. */
export const EMAIL_TASK_QUEUE = 'email';

/** Deliveries of the bus; separate because slow receivers may block it. */
export const BUS_TASK_QUEUE = 'bus';

/**
 * Calls of the video provider, on workers with the folder of media; separate because transfers of files
 * are slow.
 */
export const MEDIA_TASK_QUEUE = 'media';

/** Payments on chains; only this queue's worker has the operator's key. */
export const PAYMENTS_TASK_QUEUE = 'payments';

/** The only run that signs for an address on a chain; `signerId` names both. */
export const chainSignerId = (signerId: string): string => `chain-signer-${signerId}`;

/** Temporal permits only one run under an id, so an agent has one supervisor. */
export const superviseAgentId = (agentId: string): string => `supervise-agent-${agentId}`;

export const verifyAgentId = (agentId: string): string => `verify-agent-${agentId}`;

/** One run of a swarm at a time. */
export const runSwarmId = (id: string): string => `swarm-${id}`;

/** One run of a video at a time. */
export const generateVideoId = (id: string): string => `video-${id}`;

export const provisionAgentId = (agentId: string): string => `provision-agent-${agentId}`;

/** One repair of an agent at a time. */
export const repairAgentId = (agentId: string): string => `repair-agent-${agentId}`;

export const applySecurityEventId = (id: string): string => `risc-${id}`;

export const applyProcessorEventId = (id: string): string => `processor-event-${id}`;

export const payRoyaltySplitId = (id: string): string => `royalty-split-${id}`;

/** The schedule's runs have the time appended. */
export const reconcileHostId = (host: string): string => `reconcile-${host}`;

export const heartbeatScheduleId = (userId: string): string => `heartbeat-${userId}`;

/** The schedule appends the time. */
export const sendHeartbeatsId = (userId: string): string => `send-heartbeats-${userId}`;

export const sendMailId = (mailId: string): string => `send-mail-${mailId}`;

export const cloneAgentId = (id: string): string => `clone-agent-${id}`;

/** One run, however often the deletion is requested. */
export const deleteAccountId = (userId: string): string => `delete-account-${userId}`;

/** One run at a time for each message. */
export const deliverBusMessageId = (id: string): string => `bus-message-${id}`;

/** One run at a time for each e-mail to an agent. */
export const answerEmailId = (id: string): string => `email-${id}`;
