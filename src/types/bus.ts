/** The services of messages, by the beginning of their actions. */
export const BUS_SERVICES = ['negotiation', 'amplification'] as const;

export type BusService = (typeof BUS_SERVICES)[number];

export const MESSAGE_STATUSES = ['queued', 'delivered', 'dead'] as const;

export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

/** The states of a negotiation. */
export type ThreadState = 'requested' | 'countered' | 'accepted' | 'declined' | 'cancelled';

/** The outcome of a message as a step of a negotiation: an illegal one changes nothing. */
export type StepOutcome = 'taken' | 'illegal';
